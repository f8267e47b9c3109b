/// A cell of real hosts for tests: etcd, brokerctl, and hosts with a broker, a worker and an agent.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/process/cell/etcd_process.hpp"
#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {

struct Printed {
  int exit_code = -1;
  std::string text;  ///< stdout and stderr.
  Json json() const { return Json::parse(text); }
};

/// etcd with a short TTL, and brokerctl for it.
class CellRig {
 public:
  explicit CellRig(std::int64_t ttl_ms = 4'000, const std::string& moves = "overlap") {
    etcd.put(
        "/leasehold/c/config",
        fmt::format(R"({{"version":1,"ttl_ms":{},"slack_ms":200,"moves":"{}"}})", ttl_ms, moves));
    std::ofstream(config_) << fmt::format("etcd = [\"{}\"]\ncell = \"c\"\n", etcd.address());
  }

  Child start_brokerctl(std::vector<std::string> words, const std::string& log) const {
    std::vector<std::string> argv{program_path("brokerctl"), "cell", "--config", config_};
    argv.insert(argv.end(), words.begin(), words.end());
    return Child::start({.argv = std::move(argv), .log_path = log}).value();
  }
  Printed brokerctl(std::vector<std::string> words) const {
    const std::string log = directory_.file("brokerctl.log");
    std::filesystem::remove(log);
    Child child = start_brokerctl(std::move(words), log);
    const int code = exit_status_of(child);
    return {.exit_code = code, .text = file_bytes(log)};
  }
  void admit(const std::string& tenant, const std::string& requests) const {
    const Printed printed = brokerctl({"tenants", "admit", tenant, "--max-concurrent", requests});
    INFO(printed.text);
    REQUIRE(printed.exit_code == 0);
  }
  std::string create_key(const std::string& tenant) const {
    const Printed printed = brokerctl({"keys", "create", "--tenant", tenant, "-o", "json"});
    INFO(printed.text);
    REQUIRE(printed.exit_code == 0);
    return printed.json().at("api_key");
  }
  /// Revokes the only key of the cell, and waits until no host can serve it.
  Printed revoke_key() const {
    const Json keys = brokerctl({"keys", "-o", "json"}).json();
    return brokerctl({"keys", "revoke", keys.at("items").at(0).at("key"), "--wait"});
  }
  std::string file(const std::string& name) const { return directory_.file(name); }
  /// cell.toml for brokerctl and gateways.
  const std::string& config() const { return config_; }

  EtcdProcess etcd;

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("cell").value();
  std::string config_ = directory_.file("cell.toml");
};

/// A host of the cell.
class CellHost {
 public:
  CellHost(const CellRig& rig, const std::string& name)
      : rig_(rig),
        name_(name),
        http_({"--slow-motion-us", "100", "--cell-socket", rig.file(name + ".sock"),
               "--http-idle-ttl-ms", "100", "--host-name", name, "--http-trusted-proxy",
               "uid:" + std::to_string(::getuid())}) {
    start_agent();
    REQUIRE(agent_->logs("host joined"));
  }

  void start_agent() {
    launch_agent();
    REQUIRE(agent_->logs("broker attached"));
  }
  /// Does not wait for it. `fault`: LEASEHOLD_FAULT; empty: none.
  void launch_agent(const std::string& fault = {}) {
    agent_.emplace(rig_.etcd, AgentProcess::Spec{.state = rig_.file(name_),
                                                 .host = name_,
                                                 .broker = http_.system().broker_socket(),
                                                 .socket = rig_.file(name_ + ".sock"),
                                                 .arguments = {"--door", door()},
                                                 .fault = fault});
  }
  /// Where gateways reach its worker.
  std::string door() const { return "unix:" + http_.path(); }
  AgentProcess& agent() { return *agent_; }
  HttpSystem& http() { return http_; }
  void signal(int number) {
    for (Child* child : {&http_.system().broker(), &http_.system().worker(), &agent_->child()})
      child->signal(number).value();
  }
  HttpReply ask(const std::string& key, int tokens = 5) {
    const Json message{{"role", "user"}, {"content", "Tell me a story."}};
    const Json body{{"model", "Leasehold Stories"},
                    {"messages", Json::array({message})},
                    {"max_tokens", tokens},
                    {"ignore_eos", true}};
    return http_.send(post("/v1/chat/completions", key, body));
  }
  bool answers(const std::string& key, int status) {
    return eventually([&] { return ask(key).status == status; });
  }

 private:
  const CellRig& rig_;
  std::string name_;
  HttpSystem http_;
  std::optional<AgentProcess> agent_;
};

}  // namespace leasehold::testing
