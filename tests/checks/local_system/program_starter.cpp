#include "tests/checks/local_system/program_starter.hpp"

#include <fstream>
#include <iterator>

#include "tests/checks/local_system/fd_store.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kLogEndBytes = 600;

}  // namespace

std::string ProgramStarter::worker_socket(const std::string& worker) const {
  return directory_ / (worker + ".sock");
}

std::string ProgramStarter::log_path(const std::string& log_name) const {
  return directory_ / (log_name + ".log");
}

std::string ProgramStarter::end_of_log(const std::string& log_name) const {
  if (!std::filesystem::is_regular_file(log_path(log_name))) return "it has no log file";
  std::ifstream file(log_path(log_name));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return "its log ends: " +
         text.substr(text.size() > kLogEndBytes ? text.size() - kLogEndBytes : 0);
}

ChildConfig ProgramStarter::config_of(const std::string& program,
                                      std::vector<std::string> arguments,
                                      std::string default_log_name, StartOptions options) const {
  arguments.insert(arguments.begin(), bin_dir_ + "/" + program);
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return {.argv = std::move(arguments),
          .log_path = log_path(options.log_name.empty() ? default_log_name : options.log_name),
          .environment = std::move(options.environment),
          .uid = options.uid,
          .nice = options.nice};
}

Result<Child> ProgramStarter::start_broker(StartOptions options) const {
  ChildConfig config =
      config_of("leasehold-broker", {"--socket", broker_socket()}, "broker", std::move(options));
  return store_ != nullptr ? store_->start(std::move(config)) : Child::start(config);
}

Result<Child> ProgramStarter::start_worker(const std::string& worker, const std::string& model_path,
                                           StartOptions options) const {
  return Child::start(config_of("leasehold-worker",
                                {"--broker", broker_socket(), "--name", worker, "--model",
                                 model_path, "--listen", worker_socket(worker)},
                                "worker-" + worker, std::move(options)));
}

Result<Child> ProgramStarter::start_tenant(const std::string& tenant, const std::string& prompt,
                                           StartOptions options) const {
  ChildConfig config =
      config_of("leasehold-tenant",
                {"--socket", broker_socket(), "--tenant", tenant, "--prompt", prompt, "-o", "json"},
                "tenant-" + tenant, std::move(options));
  config.read_output = true;
  return Child::start(config);
}

Result<Child> ProgramStarter::start(const std::string& program, StartOptions options) const {
  return Child::start(config_of(program, {}, program, std::move(options)));
}

Result<Child> ProgramStarter::start_reading(const std::string& program,
                                            StartOptions options) const {
  ChildConfig config = config_of(program, {}, program, std::move(options));
  config.read_output = true;
  return Child::start(config);
}

}  // namespace leasehold
