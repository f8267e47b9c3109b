#include "tests/process/gateway/gateway_process.hpp"

#include <algorithm>
#include <stdexcept>

#include "tests/support/test_paths.hpp"

namespace leasehold::testing {
namespace {

Child start(const TemporaryDirectory& directory, const std::vector<std::string>& hosts,
            std::vector<std::string> arguments, const std::string& fault) {
  arguments.insert(arguments.begin(), program_path("leasehold-gateway"));
  for (const std::string& host : hosts) arguments.insert(arguments.end(), {"--hosts", host});
  if (std::ranges::find(arguments, "--listen") == arguments.end())
    arguments.insert(arguments.end(), {"--listen", directory.file("gateway.http")});
  ChildConfig config{.argv = std::move(arguments), .log_path = directory.file("log")};
  if (!fault.empty()) config.environment.push_back("LEASEHOLD_FAULT=" + fault);
  return Child::start(config).value();
}

}  // namespace

GatewayProcess::GatewayProcess(const std::vector<std::string>& hosts,
                               std::vector<std::string> arguments, const std::string& fault)
    : directory_(TemporaryDirectory::create("gateway").value()),
      child_(start(directory_, hosts, std::move(arguments), fault)) {
  if (!eventually([&] { return logs("gateway ready") || child_.status(); }) || child_.status())
    throw std::runtime_error("the gateway does not start: " + log());
  address_ = logged_address("gateway ready address=");
}

std::string GatewayProcess::log() const {
  return file_bytes(directory_.file("log"));
}

bool GatewayProcess::logs(const std::string& text) const {
  return log().contains(text);
}

std::string GatewayProcess::logged_address(const std::string& before) const {
  const std::string text = log();
  const auto at = text.find(before);
  if (at == std::string::npos) throw std::runtime_error("the gateway logged no address");
  const auto from = at + before.size();
  return text.substr(from, text.find_first_of(" \n", from) - from);
}

HttpReply GatewayProcess::send(const std::string& request) const {
  HttpClient client(address_);
  client.write(request);
  return client.reply();
}

bool GatewayProcess::has_health(int status) const {
  return eventually([&] { return send(get("/health", "")).status == status; });
}

int GatewayProcess::stop() {
  child_.signal(SIGTERM).value();
  return exit_status_of(child_);
}

Json chat(bool stream, const std::string& model) {
  const Json message{{"role", "user"}, {"content", "Tell me a story."}};
  return {{"model", model}, {"messages", Json::array({message})}, {"stream", stream}};
}

}  // namespace leasehold::testing
