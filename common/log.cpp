#include "common/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "common/log_writer.hpp"

namespace leasehold {

namespace {

constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%f %l %n %v";

/// Null until set_up_log. Never destroyed: other threads log while the process exits.
LogWriter* log_writer = nullptr;

class QueueSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit QueueSink(LogWriter& writer) : writer_(&writer) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_->write(fmt::to_string(line));
  }
  void flush_() override {}

  LogWriter* writer_;
};

spdlog::level::level_enum parse_level(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  return parsed == spdlog::level::off ? spdlog::level::info : parsed;
}

/// Opens /dev/null for each standard descriptor that is closed: open() returns the lowest free
/// number.
void open_standard_descriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

LogWriter::ResumedLine resumed_line_of(std::string_view program) {
  const auto formatter = std::make_shared<spdlog::pattern_formatter>(kPattern);
  return [formatter, program = std::string(program)](std::uint64_t dropped) {
    const std::string text = fmt::format("log resumed dropped={}", dropped);
    spdlog::memory_buf_t line;
    formatter->format(spdlog::details::log_msg(program, spdlog::level::warn, text), line);
    return fmt::to_string(line);
  };
}

std::string current_exception_text() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "of a type without a text";
  }
}

[[noreturn]] void report_and_abort() {
  if (std::current_exception())
    spdlog::critical("uncaught exception what=\"{}\"", current_exception_text());
  flush_log();
  std::abort();
}

}  // namespace

Result<void> set_up_log(std::string_view program, std::string_view level) {
  open_standard_descriptors();
  UniqueFd own(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  log_writer = TRY(LogWriter::start(std::move(own), resumed_line_of(program), {})).release();
  auto logger = std::make_shared<spdlog::logger>(std::string(program),
                                                 std::make_shared<QueueSink>(*log_writer));
  logger->set_pattern(kPattern);
  logger->set_level(parse_level(level));
  // spdlog's default handler prints to stderr, which may wait for its reader.
  logger->set_error_handler([](const std::string&) { log_writer->count_dropped(); });
  spdlog::set_default_logger(std::move(logger));
  std::set_terminate(report_and_abort);
  std::atexit(flush_log);
  return {};
}

void set_log_level(std::string_view level) {
  spdlog::default_logger()->set_level(parse_level(level));
}

void flush_log() {
  if (log_writer != nullptr) (void)log_writer->flush(kLastLineTimeout);
}

void exit_at_once(int exit_code) {
  flush_log();
  std::_Exit(exit_code);
}

bool write_last_line(std::string_view line) {
  if (!write_beside_log(std::string(line) + '\n')) return false;
  flush_log();
  return true;
}

bool write_beside_log(std::string_view text) {
  if (log_writer == nullptr) return false;
  log_writer->write(std::string(text));
  return true;
}

std::uint64_t log_lines_dropped() {
  return log_writer == nullptr ? 0 : log_writer->dropped_lines();
}

}  // namespace leasehold
