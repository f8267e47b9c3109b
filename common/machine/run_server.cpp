#include "common/machine/run_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <boost/system/system_error.hpp>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "common/cli/print_error.hpp"
#include "common/log.hpp"
#include "common/machine/start_thread.hpp"

namespace leasehold {
namespace {

std::unexpected<Error> no_memory(const ServerProgram& program, const std::exception& error) {
  return fail(Errc::OutOfMemory, fmt::format("{}: this process ran out of memory; {}", error.what(),
                                             program.memory_advice));
}

std::unexpected<Error> unexpected_exception(const std::exception& error) {
  return fail(Errc::SystemError,
              fmt::format("unexpected exception: {}; report it with the log", error.what()));
}

/// Reports EAGAIN as a refused thread, because in a server program only the start of a thread
/// throws it.
std::unexpected<Error> system_failure(const std::exception& error, const std::error_code& code) {
  if (code != std::errc::resource_unavailable_try_again) return unexpected_exception(error);
  return std::unexpected(thread_refused("a thread", std::system_error(code)));
}

Result<void> run_without_exceptions(const ServerProgram& program,
                                    const std::function<Result<void>()>& body) try {
  return body();
} catch (const std::bad_alloc& error) {
  return no_memory(program, error);
} catch (const std::length_error& error) {
  return no_memory(program, error);
} catch (const std::system_error& error) {
  return system_failure(error, error.code());
} catch (const boost::system::system_error& error) {  // thrown by Asio's thread pools
  return system_failure(error, error.code());
} catch (const std::exception& error) {
  return unexpected_exception(error);
}

}  // namespace

int run_server(const ServerProgram& program, const std::function<Result<void>()>& body) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  Result<void> ran = set_up_log(program.name, program.log_level);
  if (ran) ran = run_without_exceptions(program, body);
  return ran ? 0 : print_error(program.name, ran.error());
}

}  // namespace leasehold
