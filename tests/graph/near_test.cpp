// Suggestions for mistyped names.

#include "lamina/error.h"

#include "tests/support/catch.h"

using namespace lamina;

TEST_CASE("at most three near names are suggested, the nearest first") {
  CHECK(near_names("resnet51", {"vgg16", "resnet101", "resnet50", "resnet18", "resnet152"}) ==
        "did you mean \"resnet50\", \"resnet101\" or \"resnet18\"?");
}

TEST_CASE("a single near name is suggested alone") {
  CHECK(near_names("alexnt", {"vgg16", "alexnet"}) == "did you mean \"alexnet\"?");
}

TEST_CASE("upper and lower case do not count as a difference") {
  CHECK(near_names("VGG16", {"vgg16", "overfeat"}) == "did you mean \"vgg16\"?");
}

TEST_CASE("a part of a name is near the name") {
  CHECK(near_names("layer1", {"conv1", "layer1.0.conv1", "fc"}) == "did you mean \"layer1.0.conv1\"?");
}

TEST_CASE("a name of two letters is not near every name") {
  CHECK(near_names("xy", {"conv1", "fc"}) == "valid names: \"conv1\", \"fc\"");
}

TEST_CASE("if no name is near, up to a dozen known names are listed") {
  CHECK(near_names("something", {"fc"}) == "valid names: \"fc\"");
  CHECK(near_names("something", {}) == "there are none");
  CHECK(near_names("something", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"}) ==
        "valid names: \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\", \"j\", \"k\", \"l\" and 2 more");
}

TEST_CASE("an edit distance counts changed, added and dropped characters, of a whole text or of its best part") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("sitting", "kitten") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("resnet", "net/resnet50/total") == 12);
  CHECK(edit_distance("resnet", "net/resnet50/total", Match::part) == 0);
  CHECK(edit_distance("resmet5", "net/resnet50/total", Match::part) == 1);
  CHECK(edit_distance("abc", "", Match::part) == 3);
}
