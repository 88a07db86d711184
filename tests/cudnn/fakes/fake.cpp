// The fake functions of the table: one template, instantiated for each function of cuDNN.

#include "tests/cudnn/fakes/fake.h"

#include <cstring>
#include <sstream>
#include <type_traits>

#include "lib/core/numbers/float16.h"
#include "tests/cudnn/fakes/types.h"

namespace lamina::test {
namespace {

using namespace lamina::cudnn;

Fake* current = nullptr;

struct Object {
  std::string text;
};

template <class T>
constexpr bool is_object =
    std::is_same_v<T, HandleObject*> || std::is_same_v<T, TensorObject*> || std::is_same_v<T, FilterObject*> ||
    std::is_same_v<T, ConvolutionObject*> || std::is_same_v<T, PoolingObject*> ||
    std::is_same_v<T, ActivationObject*> || std::is_same_v<T, LrnObject*> || std::is_same_v<T, OpTensorObject*> ||
    std::is_same_v<T, DropoutObject*> || std::is_same_v<T, RnnObject*> || std::is_same_v<T, RnnDataObject*>;

template <class T>
Object& object(T pointer) {
  return *reinterpret_cast<Object*>(pointer);
}

template <class T>
constexpr bool is_place_for_object = std::is_pointer_v<T>&& is_object<std::remove_pointer_t<T>>;

Pass pass_of(const std::string& call) {
  if (call.find("BackwardData") != std::string::npos) return Pass::backward_data;
  return call.find("BackwardFilter") != std::string::npos ? Pass::backward_params : Pass::forward;
}

int algorithms_of(Pass pass) { return pass == Pass::forward ? 8 : pass == Pass::backward_data ? 6 : 7; }

std::string join(const std::vector<std::string>& words, std::size_t first, std::size_t count, const char* between) {
  std::string all;
  for (std::size_t i = first; i < first + count; ++i) all += (i == first ? "" : between) + words[i];
  return all;
}

/// The text of an object after a call has set it.
std::string setting(const std::string& call, const std::vector<std::string>& words) {
  if (call == "SetTensor4dDescriptorEx")
    return type_text(std::stoi(words[1])) + " " + join(words, 2, 4, "x") + " / " + join(words, 6, 4, " ");
  if (call == "SetFilter4dDescriptor")
    return type_text(std::stoi(words[1])) + " filter " + join(words, 3, 4, "x") + (words[2] == "0" ? "" : " nhwc");
  return call.substr(3) + " " + join(words, 1, words.size() - 1, " ");
}

template <class Tag, class Function>
struct Entry;
template <class Tag, class... P>
struct Entry<Tag, Status(P...)> {
  static Status call(P... p) { return current->answer(Tag::name, p...); }
  static constexpr auto function = &call;
};
template <class Tag, class R, class... P>
struct Entry<Tag, R(P...)> {
  static constexpr std::add_pointer_t<R(P...)> function = nullptr;
};

#define LAMINA_TEST_TAG(entry, ...)             \
  struct entry##Tag {                           \
    static constexpr const char* name = #entry; \
  };
LAMINA_CUDNN_ENTRY_POINTS(LAMINA_TEST_TAG)

/// Calls `function` with each argument of type T.
template <class T, class Function, class... P>
void each_of(const Function& function, P... p) {
  const auto call = [&]([[maybe_unused]] auto argument) {
    if constexpr (std::is_same_v<decltype(argument), T>) function(argument);
  };
  (call(p), ...);
}

template <class T>
bool is_null([[maybe_unused]] T argument) {
  if constexpr (std::is_pointer_v<T>)
    return argument == nullptr;
  else
    return false;
}

/// Whether cuDNN 9.19 and 9.26 accept these int arguments of SetRNNDescriptor_v8.
bool takes_network(const std::vector<int>& arguments) {
  const int algorithm = arguments[0], biases = arguments[2], type = arguments[5];
  const bool is_static = algorithm == rnn::persist_static || algorithm == rnn::persist_small_h;
  return algorithm == rnn::standard || (biases == rnn::both_biases && !(is_static && type == data_type::f64));
}

const char* name_of(Status status) {
  static const std::map<Status, const char*> old = {{0, "CUDNN_STATUS_SUCCESS"},
                                                    {2, "CUDNN_STATUS_ALLOC_FAILED"},
                                                    {3, "CUDNN_STATUS_BAD_PARAM"},
                                                    {8, "CUDNN_STATUS_EXECUTION_FAILED"},
                                                    {9, "CUDNN_STATUS_NOT_SUPPORTED"}},
                                             young = {{0, "CUDNN_STATUS_SUCCESS"},
                                                      {2000, "CUDNN_STATUS_BAD_PARAM"},
                                                      {3000, "CUDNN_STATUS_NOT_SUPPORTED"},
                                                      {4004, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"},
                                                      {5000, "CUDNN_STATUS_EXECUTION_FAILED"}};
  const auto& names = current->api.version < 90000 ? old : young;
  const auto found = names.find(status);
  return found == names.end() ? "CUDNN_UNKNOWN_STATUS" : found->second;
}

}  // namespace

std::string described(const void* object) { return static_cast<const Object*>(object)->text; }

AlgorithmResult result(int algorithm, std::size_t bytes, int math, int determinism, Status status) {
  return {algorithm, status, -1, bytes, determinism, math, {}};
}

template <class T>
std::string Fake::text(T value) const {
  std::ostringstream out;
  if constexpr (is_object<T>) {
    out << (value == nullptr ? "null" : object(value).text);
  } else if constexpr (std::is_same_v<T, const void*> || std::is_same_v<T, void*>) {
    if (value == nullptr)
      out << "null";
    else if (const auto found = memory_.find(value); found != memory_.end())
      out << found->second;
    else if constexpr (std::is_same_v<T, void*>)
      out << "memory";
    else
      out << number(value);
  } else if constexpr (std::is_pointer_v<T>) {
    out << "to";
  } else {
    out << value;
  }
  return out.str();
}

/// The value of a factor, or the first number of a block without a name.
double Fake::number(const void* value) const {
  if (value_type_ == "f64") return *static_cast<const double*>(value);
  if (value_type_ == "f16" || value_type_ == "bf16")
    return widen(value_type_ == "f16" ? DType::f16 : DType::bf16, *static_cast<const std::uint16_t*>(value));
  float single = 0;
  std::memcpy(&single, value, sizeof(single));
  return static_cast<double>(single);
}

template <class... P>
Status Fake::answer(const std::string& call, P... p) {
  if (call.starts_with("Destroy")) {
    const auto destroy = [&](auto pointer) {
      if constexpr (is_object<decltype(pointer)>) delete &object(pointer), --living;
    };
    (destroy(p), ...);
    calls.push_back(call);
    return ok;
  }
  if (count++ == fail_call) return fail_status;
  std::vector<int> ints;
  each_of<int>([&](int number) { ints.push_back(number); }, p...);
  // The first int argument is the algorithm of a convolution's run.
  if (call == fail_call_of && !ints.empty() && ints[0] == fail_algorithm) return fail_status;
  if (const auto told = status.find(call); told != status.end()) return told->second;
  if (call == "SetRNNDescriptor_v8" && !takes_network(ints)) return 3000;
  if (call == "GetRNNWeightParams" && (is_null(p) || ...)) return 2000;

  Status outcome = ok;
  const Pass pass = pass_of(call);
  const auto make = [&](auto pointer) {
    using T = decltype(pointer);
    if constexpr (is_place_for_object<T>) {
      *pointer = reinterpret_cast<std::remove_pointer_t<T>>(new Object{call == "Create" ? "handle" : "new"});
      ++made, ++living;
    }
  };
  (make(p), ...);
  const bool asks_for_most = call.ends_with("MaxCount");
  each_of<int*>([&](int* to) { *to = asks_for_most ? algorithms_of(pass) : static_cast<int>(answers[pass].size()); },
                p...);
  each_of<AlgorithmResult*>([&](AlgorithmResult* to) { std::copy(answers[pass].begin(), answers[pass].end(), to); },
                            p...);

  if (call == "GetRNNWeightParams") {
    const char* weights = nullptr;
    each_of<const void*>([&](const void* data) { weights = static_cast<const char*>(data); }, p...);
    std::size_t first = 0;               // number of the first matrix, then of the first bias
    const auto place = [&](void** to) {  // ints: the layer, the matrix
      if (to != nullptr)
        *to = const_cast<char*>(weights) + (first + static_cast<std::size_t>(ints[1])) * rnn_place_step;
      first += 8;
    };
    each_of<void**>(place, p...);
  }
  value_type_ = double_factors ? "f64" : "f32";
  if (call == "SetTensor")  // the value has the tensor's type
    each_of<TensorObject*>(
        [&](TensorObject* its) { value_type_ = object(its).text.substr(0, object(its).text.find(' ')); }, p...);
  const std::vector<std::string> words = {text(p)...};
  if (const std::string reason = unlisted_types(call, words, api.version); !reason.empty()) {
    last_error = call + ": " + reason;
    return api.version < 90000 ? 3 : 2000;
  }
  if (call == "GetRNNWeightSpaceSize" || call == "GetRNNTempSpaceSizes") {
    std::size_t place = call == "GetRNNWeightSpaceSize" ? 0 : 1;
    const std::size_t sizes[] = {rnn_weight_bytes, rnn_work_bytes, rnn_reserve_bytes};
    each_of<std::size_t*>([&](std::size_t* to) { *to = sizes[place++]; }, p...);
  } else if constexpr ((std::is_same_v<P, std::size_t*> ||
                        ...)) {  // a query for workspace: the last int is the algorithm
    const int algorithm = ints.back();
    const std::size_t bytes =
        workspace.contains(algorithm) ? workspace[algorithm] : 100 * static_cast<std::size_t>(algorithm + 1);
    each_of<std::size_t*>([&](std::size_t* to) { *to = bytes; }, p...);
    if (workspace_status.contains(algorithm)) outcome = workspace_status[algorithm];
  }
  const auto set = [&](auto first, auto...) {
    if constexpr (is_object<decltype(first)> && !std::is_same_v<decltype(first), HandleObject*>) {
      const std::string said = setting(call, words);
      if (call == "SetConvolutionGroupCount" || call == "SetConvolutionMathType") {
        std::string& so_far = object(first).text;  // keeps the last setting of each kind
        if (const std::size_t at = so_far.find(", " + call.substr(3)); at != std::string::npos) {
          const std::size_t end = so_far.find(", ", at + 2);
          so_far.erase(at, end == std::string::npos ? end : end - at);
        }
        so_far += ", " + said;
      } else if (call.starts_with("Set")) {
        object(first).text = said;
      }
    }
  };
  set(p...);
  calls.push_back(call + "(" + join(words, 0, words.size(), ", ") + ")");
  return outcome;
}

Fake::Fake(std::size_t version) : before_(current) {
  current = this;
  api.version = version;
#define LAMINA_TEST_FILL(entry, ...) api.entry = Entry<entry##Tag, __VA_ARGS__>::function;
  LAMINA_CUDNN_ENTRY_POINTS(LAMINA_TEST_FILL)
  api.GetVersion = [] { return current->api.version; };
  api.GetErrorString = name_of;
  if (version >= 90000)
    api.GetLastErrorString = [](char* to, std::size_t size) {
      current->last_error.copy(to, size - 1);
      to[std::min(size - 1, current->last_error.size())] = 0;
    };
  api.GetCudartVersion = [] { return std::size_t{13010}; };
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
    for (int i = 0; i < algorithms_of(pass); ++i)
      answers[pass].push_back(result(i, 100, version < 8000 ? math_type::standard : math_type::fma));
}

Fake::~Fake() { current = before_; }

std::vector<std::string> names_of(const std::vector<std::string>& calls) {
  std::vector<std::string> names;
  for (const std::string& call : calls) names.push_back(call.substr(0, call.find_first_of("( ")));
  return names;
}

}  // namespace lamina::test
