// Extents that a file leaves open, and the options' extents for them.

#include <algorithm>
#include <limits>

#include "importer.h"
#include "lamina/error.h"
#include "lib/core/text/utf8.h"

namespace lamina::onnx {
namespace {

constexpr std::size_t most_named = 100;  // names in an error; a hostile file may have very many

std::string names_text(const std::vector<OnnxOpenExtent>& open) {
  std::string text;
  for (std::size_t i = 0; i < std::min(open.size(), most_named); ++i)
    text += (text.empty() ? "" : ", ") + in_quotes(open[i].name);
  return open.size() > most_named ? text + ", and others" : text;
}

}  // namespace

/// The batch axis: the first with the label 'n'. Nothing if the operators take the input as one image.
std::optional<std::size_t> Importer::batch_axis(const ValueMessage& input) {
  const std::size_t rank = input.shape ? input.shape->size() : 0;
  if (const auto given = options_.batch_axes.find(std::string(input.name)); given != options_.batch_axes.end()) {
    if (given->second < 0 || static_cast<std::size_t>(given->second) >= rank)
      throw UsageError(in_file(input.name) + " has no axis " + std::to_string(given->second) +
                       ", although OnnxOptions::batch_axes names it");
    return static_cast<std::size_t>(given->second);
  }
  if (rank == 1) return 0;
  guesses_labels_ = false;
  const std::size_t at = labels_of(input.name, rank, 0).find('n');
  if (guesses_labels_) return 0;
  return at == AxisLabels::npos ? std::nullopt : std::optional(at);
}

std::vector<OnnxOpenExtent> Importer::open_extents_of_all() {
  std::set<std::string_view> outputs;
  for (const ValueMessage& output : file_.outputs) outputs.insert(output.name);
  read_file(outputs);
  return open_extents();
}

/// Calls visit(input, axis, whether it is the batch) for each open extent that has a name, except in inputs that are
/// constants.
template <class Visit>
void Importer::for_each_open(Visit visit) {
  for (const ValueMessage& input : file_.inputs) {
    if (!input.shape || !inputs_.contains(input.name)) continue;
    const std::optional<std::size_t> batch = batch_axis(input);
    for (std::size_t axis = 0; axis < input.shape->size(); ++axis) {
      const DimMessage& dim = (*input.shape)[axis];
      if (!dim.value && !dim.param.empty()) visit(input, axis, axis == batch);
    }
  }
}

/// Each name once, in the file's order.
std::vector<OnnxOpenExtent> Importer::open_extents() {
  std::vector<OnnxOpenExtent> open;
  std::unordered_map<std::string_view, std::size_t> places;
  for_each_open([&](const ValueMessage& input, std::size_t axis, bool is_batch) {
    const std::string_view name = (*input.shape)[axis].param;
    const auto [place, is_new] = places.emplace(name, open.size());
    if (is_new) open.push_back({.name = std::string(name), .batch = true});
    if (!is_batch) open[place->second].batch = false;
  });
  return open;
}

bool Importer::is_read(const ValueMessage& input) const {
  return inputs_.contains(input.name) && (!nodes_.readers(input.name).empty() || input.name == output_);
}

/// Throws UsageError for an extent of the options that the file does not leave open. Throws one UsageError for all open
/// extents that the options lack.
void Importer::check_extents() {
  if (!options_.extents.empty()) {
    const std::vector<OnnxOpenExtent> open = open_extents();
    for (const auto& [name, extent] : options_.extents)
      if (std::ranges::find(open, name, &OnnxOpenExtent::name) == open.end())
        throw UsageError(name_ + ": " + in_quotes(name) + " of OnnxOptions::extents names no open axis; " +
                         (open.empty() ? "none is open" : "valid names: " + names_text(open)));
  }
  std::set<std::string_view> missing;
  std::string all;
  for_each_open([&](const ValueMessage& input, std::size_t axis, bool is_batch) {
    const std::string_view name = (*input.shape)[axis].param;
    if (!is_read(input) || is_batch || options_.extents.contains(std::string(name))) return;
    if (missing.size() == most_named || !missing.insert(name).second) return;
    all += (all.empty() ? "" : ", ") + in_quotes(name) + " (axis " + std::to_string(axis) + " of " +
           in_quotes(input.name) + ")";
  });
  if (!missing.empty())
    throw UsageError(name_ + " leaves " + all + " open: give " +
                     (missing.size() == 1 ? "its extent" : "their extents") + " in OnnxOptions::extents");
}

Extents Importer::extents_of(const ValueMessage& input) {
  if (!input.shape)
    throw Unsupported(in_file(input.name) + " is an input without extents, or not a tensor: its shape is needed");
  const std::optional<std::size_t> batch = batch_axis(input);
  if (batch != 0 && !input.shape->empty())
    result_.notes.push_back(in_quotes(input.name) + (batch ? " has its batch at axis " + std::to_string(*batch)
                                                           : std::string(" is one image: it has no batch")));
  Extents extents;
  for (std::size_t i = 0; i < input.shape->size(); ++i) {
    const DimMessage& dim = (*input.shape)[i];
    const auto given = options_.extents.find(std::string(dim.param));
    if (!dim.value && !dim.param.empty() && given != options_.extents.end()) {
      extents.push_back(given->second);
    } else if (i == batch && (options_.batch > 0 || !dim.value)) {
      extents.push_back(std::max(options_.batch, 1));
      const bool number = dim.value && *dim.value > 0 && *dim.value <= std::numeric_limits<int>::max();
      if (number && *dim.value != options_.batch) fixed_batch_ = *dim.value;
    } else if (dim.value) {
      extents.push_back(*dim.value);
    } else {  // check_extents() has reported those with a name
      throw Unsupported(in_file(input.name) + " leaves its axis " + std::to_string(i) +
                        " open without a name: it needs an extent in the file");
    }
  }
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw FileError(in_file(input.name) + " is an input of " + text(extents));
    if (extent == 0) throw Unsupported(in_file(input.name) + " is an input of " + text(extents) + ", without numbers");
  }
  if (!element_count(extents)) throw FileError(in_file(input.name) + " is an input of " + text(extents));
  return extents;
}

}  // namespace lamina::onnx
