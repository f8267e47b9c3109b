#include "worker/batch/record_json.hpp"

#include <fmt/format.h>

#include <optional>

namespace leasehold::batch {
namespace {

/// Thrown by `get` only, and caught by `read`.
struct BadField {
  std::string name;
};

template <class T>
T get(const Json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end()) throw BadField{field};
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    throw BadField{field};
  }
}

/// A record that this program wrote is whole, so a missing field means that another program
/// changed the file.
template <class T>
Result<T> read(const Json& json, T (*parse)(const Json&)) {
  if (!json.is_object()) return fail(Errc::FileCorrupt, "the record is not a JSON object");
  try {
    return parse(json);
  } catch (const BadField& bad) {
    return fail(Errc::FileCorrupt,
                fmt::format("field {} of the record is missing or has a wrong type", bad.name));
  }
}

std::optional<Status> status_from_name(std::string_view text) {
  for (int i = 0; i < kStatusCount; ++i)
    if (name(static_cast<Status>(i)) == text) return static_cast<Status>(i);
  return std::nullopt;
}

Status get_status(const std::string& text) {
  const auto status = status_from_name(text);
  if (!status) throw BadField{"status"};
  return *status;
}

Owner parse_owner(const Json& json) {
  return {.tenant = {get<std::string>(json, "tenant")},
          .admitted_unix_ms = get<std::int64_t>(json, "tenant_admitted_unix_ms")};
}

FileRecord parse_file(const Json& json) {
  return {.id = get<std::string>(json, "id"),
          .owner = parse_owner(json),
          .filename = get<std::string>(json, "filename"),
          .purpose = get<std::string>(json, "purpose"),
          .size_bytes = get<std::uint64_t>(json, "size_bytes"),
          .created_at = get<std::int64_t>(json, "created_at"),
          .expires_at = get<std::int64_t>(json, "expires_at")};
}

std::vector<LineError> parse_errors(const Json& json) {
  std::vector<LineError> errors;
  for (const Json& each : get<std::vector<Json>>(json, "errors")) {
    errors.push_back({.code = get<std::string>(each, "code"),
                      .message = get<std::string>(each, "message"),
                      .param = get<std::string>(each, "param"),
                      .line = get<std::uint32_t>(each, "line")});
  }
  return errors;
}

BatchRecord parse_batch(const Json& json) {
  BatchRecord batch{.id = get<std::string>(json, "id"),
                    .owner = parse_owner(json),
                    .key = {get<std::string>(json, "key")},
                    .batch_key = get<std::string>(json, "batch_key"),
                    .endpoint = get<std::string>(json, "endpoint"),
                    .input_file = get<std::string>(json, "input_file"),
                    .output_file = get<std::string>(json, "output_file"),
                    .error_file = get<std::string>(json, "error_file"),
                    .status = get_status(get<std::string>(json, "status")),
                    .reached_at = {},
                    .expires_at = get<std::int64_t>(json, "expires_at"),
                    .has_expired = get<bool>(json, "has_expired"),
                    .counts = {.total = get<std::uint32_t>(json, "total"),
                               .completed = get<std::uint32_t>(json, "completed"),
                               .failed = get<std::uint32_t>(json, "failed")},
                    .errors = parse_errors(json),
                    .metadata = get<std::map<std::string, std::string>>(json, "metadata")};
  for (const auto& [status, at] : get<std::map<std::string, std::int64_t>>(json, "reached_at"))
    batch.reached_at.emplace(get_status(status), at);
  return batch;
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json errors_to_api(const BatchRecord& batch) {
  if (batch.errors.empty()) return nullptr;
  Json list = Json::array();
  for (const LineError& error : batch.errors) {
    Json entry{{"code", error.code}, {"message", error.message}, {"param", or_null(error.param)}};
    entry["line"] = error.line == 0 ? Json(nullptr) : Json(error.line);
    list.push_back(std::move(entry));
  }
  return {{"object", "list"}, {"data", std::move(list)}};
}

Json time_of(const BatchRecord& batch, Status status) {
  const auto found = batch.reached_at.find(status);
  return found == batch.reached_at.end() ? Json(nullptr) : Json(found->second);
}

}  // namespace

Json to_disk(const FileRecord& file) {
  return {{"id", file.id},
          {"tenant", file.owner.tenant.value},
          {"tenant_admitted_unix_ms", file.owner.admitted_unix_ms},
          {"filename", file.filename},
          {"purpose", file.purpose},
          {"size_bytes", file.size_bytes},
          {"created_at", file.created_at},
          {"expires_at", file.expires_at}};
}

Json to_disk(const BatchRecord& batch) {
  Json errors = Json::array();
  for (const LineError& error : batch.errors) {
    errors.push_back(Json{{"code", error.code},
                          {"message", error.message},
                          {"param", error.param},
                          {"line", error.line}});
  }
  Json reached = Json::object();
  for (const auto& [status, at] : batch.reached_at) reached[std::string(name(status))] = at;
  return {{"id", batch.id},
          {"tenant", batch.owner.tenant.value},
          {"tenant_admitted_unix_ms", batch.owner.admitted_unix_ms},
          {"key", batch.key.value},
          {"batch_key", batch.batch_key},
          {"endpoint", batch.endpoint},
          {"input_file", batch.input_file},
          {"output_file", batch.output_file},
          {"error_file", batch.error_file},
          {"status", name(batch.status)},
          {"reached_at", std::move(reached)},
          {"expires_at", batch.expires_at},
          {"has_expired", batch.has_expired},
          {"total", batch.counts.total},
          {"completed", batch.counts.completed},
          {"failed", batch.counts.failed},
          {"errors", std::move(errors)},
          {"metadata", batch.metadata}};
}

Result<FileRecord> file_from_disk(const Json& json) {
  return read<FileRecord>(json, parse_file);
}

Result<BatchRecord> batch_from_disk(const Json& json) {
  return read<BatchRecord>(json, parse_batch);
}

Json to_api(const FileRecord& file) {
  return {{"id", file.id},
          {"object", "file"},
          {"bytes", file.size_bytes},
          {"created_at", file.created_at},
          {"expires_at", file.expires_at},
          {"filename", file.filename},
          {"purpose", file.purpose},
          {"status", "processed"}};
}

Json to_api(const BatchRecord& batch, bool has_output, bool has_errors) {
  Json api{{"id", batch.id},
           {"object", "batch"},
           {"endpoint", batch.endpoint},
           {"errors", errors_to_api(batch)},
           {"input_file_id", batch.input_file},
           {"completion_window", "24h"},
           {"status", name(batch.status)}};
  api["output_file_id"] = has_output ? Json(batch.output_file) : Json(nullptr);
  api["error_file_id"] = has_errors ? Json(batch.error_file) : Json(nullptr);
  api["created_at"] = batch.created_at();
  api["expires_at"] = batch.expires_at;
  for (const Status status :
       {Status::InProgress, Status::Finalizing, Status::Completed, Status::Failed, Status::Expired,
        Status::Cancelling, Status::Cancelled}) {
    api[std::string(name(status)) + "_at"] = time_of(batch, status);
  }
  api["request_counts"] = {{"total", batch.counts.total},
                           {"completed", batch.counts.completed},
                           {"failed", batch.counts.failed}};
  api["metadata"] = batch.metadata.empty() ? Json(nullptr) : Json(batch.metadata);
  return api;
}

}  // namespace leasehold::batch
