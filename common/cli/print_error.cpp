#include "common/cli/print_error.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "common/cli/terminal_text.hpp"
#include "common/log.hpp"

namespace leasehold {
namespace {

bool is_control(unsigned char byte) {
  return byte < 0x20 || byte == 0x7F;
}

static_assert(kExitReaderGone == 128 + SIGPIPE);

/// True if the detail says what to do, which it does behind a semicolon. For these codes it knows
/// the path, the user and the option, and the hint would only repeat it.
bool advises_itself(const Error& error) {
  const bool may_advise = error.code == Errc::PermissionDenied || error.code == Errc::SocketInUse;
  return may_advise && error.detail.contains("; ");
}

/// Checks both std::cout and stdout: the file may have an error that the stream does not show.
bool stdout_accepts() {
  std::cout.flush();
  return std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

/// True for a pipe or socket whose other end is closed. Asks the kernel: the errno of the write
/// that failed may be lost.
bool is_stdout_reader_gone() {
  pollfd entry{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t wide_bytes = format_control_bytes(text.substr(i));
    const bool is_narrow = is_control(static_cast<unsigned char>(text[i]));
    const bool is_hidden = wide_bytes > 0 || (is_narrow && !kept.contains(text[i]));
    out += is_hidden ? ' ' : text[i];
    if (wide_bytes > 0) i += wide_bytes - 1;
  }
  return out;
}

std::string_view error_hint(const Error& error) {
  if (error.code == Errc::Draining && error.scope == FailureScope::Tenant)
    return "try again later; only an operator can end a drain";
  if (error.scope == FailureScope::Adapter && is_lease_ended(error.code))
    return "submit again; the worker loads the adapter again unless it was removed";
  if (error.scope == FailureScope::Adapter && error.code == Errc::FileCorrupt)
    return "restore the file, or make a new version with `brokerctl adapters add`";
  if (error.scope != FailureScope::Shared) return error_hint(error.code);
  if (is_lease_ended(error.code)) {
    return "publish the text again with `brokerctl prefix publish`; its readers submit again, "
           "leasehold-tenant --rebind by itself";
  }
  if (error.code == Errc::QuotaBlocks)
    return "revoke a text of `brokerctl prefix`, or raise --max-shared-blocks of leasehold-broker";
  return error_hint(error.code);
}

std::string format_error(std::string_view program, const Error& error) {
  return format_error(program, error, error_hint(error));
}

std::string format_error(std::string_view program, const Error& error, std::string_view next) {
  const std::string line =
      fmt::format("{}: {} ({})", program, printable(error.detail), name(error.code));
  const bool is_advised = advises_itself(error) && next == error_hint(error.code);
  return is_advised ? line : fmt::format("{}; next: {}", line, printable(next));
}

int print_error(std::string_view program, const Error& error) {
  return print_error(program, error, error_hint(error));
}

int print_error(std::string_view program, const Error& error, std::string_view next) {
  const std::string line = format_error(program, error, next);
  if (!write_last_line(line)) std::cerr << line + '\n';
  return exit_code(error.code);
}

int finish_program_with(int exit_code, const std::function<int(const Error&)>& print) {
  if (stdout_accepts()) return exit_code;
  if (is_stdout_reader_gone()) return kExitReaderGone;
  return print({Errc::DiskFull, "the answer could not be written to stdout"});
}

int finish_program(std::string_view program, int exit_code) {
  return finish_program_with(exit_code,
                             [program](const Error& error) { return print_error(program, error); });
}

}  // namespace leasehold
