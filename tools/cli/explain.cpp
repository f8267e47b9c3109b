#include "tools/cli/explain.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/next_step.hpp"

namespace leasehold::cli {

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? ' ' : c;
  }
  return out;
}

std::string explain(std::string_view program, const Error& error) {
  return fmt::format("{}: {} ({}); next: {}", program, printable(error.detail), name(error.code),
                     next_step(error.code));
}

namespace {

std::string error_line(std::string_view code, std::string_view detail, std::string_view next,
                       int exit_code, bool retryable) {
  const nlohmann::json line{{"error",
                             {{"code", code},
                              {"detail", detail},
                              {"next", next},
                              {"exit_code", exit_code},
                              {"retryable", retryable}}}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string explain_json(const Error& error) {
  return error_line(name(error.code), error.detail, next_step(error.code), exit_code(error.code),
                    is_retryable(error.code));
}

std::string usage_json(std::string_view text) {
  return error_line(name(Errc::BadRequest), text, next_step(Errc::BadRequest), kExitUsage, false);
}

}  // namespace leasehold::cli
