#include "tests/checks/runner/tenant_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace leasehold::runner {
namespace {

using Json = nlohmann::json;

Result<void> note_token(TenantRecord& record, const Json& line) {
  const auto position = line.at("position").get<std::uint64_t>();
  if (position != record.tokens.size()) {
    return fail(Errc::MalformedMessage, fmt::format("tenant {} reported position {}, expected {}",
                                                    record.name, position, record.tokens.size()));
  }
  record.tokens.push_back(line.at("token").get<std::int32_t>());
  record.token_times.push_back({line.value("at_boottime_ns", std::int64_t{0})});
  record.text += line.at("text").get<std::string>();
  return {};
}

Result<void> append_event(TenantRecord& record, const Json& line) {
  const auto mode = line.value("mode", std::string());
  TenantEvent reported{.event = line.at("event").get<std::string>(),
                       .at = TimePoint{line.value("at_boottime_ns", std::int64_t{0})},
                       .why = line.value("code", line.value("reason", mode)),
                       .detail = line.value("detail", std::string()),
                       .other_arithmetic = line.value("other_arithmetic", std::string()),
                       .scope = line.value("scope", std::string())};
  if (line.contains("lease"))
    reported.lease = TRY(LeaseId::parse(line["lease"].get<std::string>()));
  record.reported.push_back(std::move(reported));
  return {};
}

Result<void> note_event(TenantRecord& record, const Json& line) {
  const auto event = line.at("event").get<std::string>();
  if (event == "token") return note_token(record, line);
  TRY(append_event(record, line));
  if (event == "acquired") {
    record.leases.push_back(TRY(LeaseId::parse(line.at("lease").get<std::string>())));
  } else if (event == "revoked") {
    record.revocations.push_back({.lease = TRY(LeaseId::parse(line.at("lease").get<std::string>())),
                                  .reason = line.at("reason").get<std::string>(),
                                  .after_tokens = line.at("emitted_tokens").get<std::uint32_t>()});
  } else if (event == "completed") {
    record.completed = line.at("reason").get<std::string>();
    record.text += line.value("text", std::string());
  } else if (event == "failed") {
    record.failed = fmt::format("{}: {}", line.at("code").get<std::string>(),
                                line.at("detail").get<std::string>());
  }
  return {};
}

}  // namespace

Result<void> note(TenantRecord& record, std::string_view line) {
  try {
    return note_event(record, Json::parse(line));
  } catch (const Json::exception& error) {
    return fail(Errc::MalformedMessage,
                fmt::format("tenant {} printed a line that cannot be parsed: {}", record.name,
                            error.what()));
  }
}

std::optional<std::string> LineBuffer::next() {
  const auto end = rest_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = rest_.substr(0, end);
  rest_.erase(0, end + 1);
  return line;
}

Result<bool> read_output(const UniqueFd& fd, std::string& output) {
  std::array<char, 16 * 1024> bytes;
  while (true) {
    const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
    if (got == 0) return true;
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0 && errno != EINTR) return fail_errno(Errc::SystemError, "read", errno);
    if (got > 0) output.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

Result<bool> read_available(const UniqueFd& output, LineBuffer& lines, TenantRecord& record) {
  std::string bytes;
  const bool is_over = TRY(read_output(output, bytes));
  lines.append(bytes);
  while (const auto line = lines.next()) TRY(note(record, *line));
  return is_over;
}

}  // namespace leasehold::runner
