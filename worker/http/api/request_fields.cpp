#include "worker/http/api/request_fields.hpp"

#include <fmt/format.h>

#include "common/random.hpp"

namespace leasehold::http {

Read<std::string> read_model_name(const Field& named, const ApiModel& model) {
  std::string name = TRY(text_of(named, model.name));
  if (!has_name(model, name) && !is_adapter(model, name))
    return std::unexpected(unknown_model(model, name));
  return name;
}

Read<RequestId> read_request_id(const BodyFields& body, const RequestDefaults& defaults) {
  const Field id = body[body["request_id"] ? "request_id" : "rid"];
  if (!id) return defaults.request_id.value_or(RequestId{mint_request_id()});
  const auto parsed = RequestId::parse(TRY(text_of(id, {})));
  if (!parsed) return id.refuse(fmt::format("{}: {}", id.path(), parsed.error().detail));
  return *parsed;
}

}  // namespace leasehold::http
