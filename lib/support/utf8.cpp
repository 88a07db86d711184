#include "utf8.h"

#include <nlohmann/json.hpp>

namespace lamina {

std::string to_utf8(std::string_view text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

}  // namespace lamina
