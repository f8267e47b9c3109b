#include "tools/brokerctl/arguments/worker_arguments.hpp"

#include <CLI/CLI.hpp>

#include "common/cli/command_line.hpp"

namespace leasehold::brokerctl {

CLI::App* WorkerArguments::add_replace(CLI::App& noun) {
  CLI::App* verb = noun.add_subcommand(
      "replace",
      "Move the leases of all tenants to another worker of the same model and options, and wait "
      "until the old one may be stopped; `brokerctl undrain --worker OLD` cancels the replacement");
  verb->group("Verbs");
  wire::WorkerReplace& message = replace_.message;
  verb->add_option("old", message.worker, "Worker to replace")->required()->check(check_name);
  verb->add_option("new", message.by, "Worker that takes over")->required()->check(check_name);
  verb->add_option("--grace-ms", message.grace_ms,
                   "Time for the holders to move; what is left then is revoked")
      ->check(CLI::Range(0, 86'400'000))
      ->capture_default_str();
  verb->add_flag("--any-arithmetic", message.any_arithmetic,
                 "Also where the workers compute in different arithmetics; only texts that allow "
                 "it move, and may change from there on");
  verb->add_option("--timeout-ms", replace_.timeout_ms,
                   "Longest time from the end of the grace until no lease is left")
      ->check(CLI::Range(1, 86'400'000))
      ->capture_default_str();
  return verb;
}

ReplaceWorker WorkerArguments::replace(RequestId request_id) const {
  ReplaceWorker replace = replace_;
  replace.message.request_id = std::move(request_id);
  return replace;
}

}  // namespace leasehold::brokerctl
