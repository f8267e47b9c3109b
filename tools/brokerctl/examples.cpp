#include "tools/brokerctl/examples.hpp"

#include <CLI/CLI.hpp>
#include <string>

#include "common/cli/command_tree.hpp"

namespace leasehold::brokerctl {
namespace {

struct Example {
  const char* command;  ///< "tenants admit"
  const char* lines;
};

constexpr Example kExamples[]{
    {"status", "brokerctl status\nbrokerctl status -o json"},
    {"top", "brokerctl top\nbrokerctl top --once"},
    {"revoke",
     "brokerctl revoke 17.4 --wait\nbrokerctl revoke --tenant alice\nbrokerctl revoke --part blk.1 "
     "--worker w1"},
    {"drain", "brokerctl drain --tenant alice --grace-ms 5000\nbrokerctl drain --worker w1 --wait"},
    {"undrain", "brokerctl undrain --tenant alice\nbrokerctl undrain --worker w1"},
    {"timeline", "brokerctl timeline 17.4"},
    {"events", "brokerctl events --lease 17.4\nbrokerctl events --follow --tenant alice -o json"},
    {"watch", "brokerctl watch --tenant alice\nbrokerctl watch --steps --interval-ms 500"},
    {"leases", "brokerctl leases -o wide\nbrokerctl leases --tenant alice --state Live --watch"},
    {"extents", "brokerctl extents"},
    {"workers", "brokerctl workers\nbrokerctl workers -o json"},
    {"workers replace",
     "brokerctl workers replace w1 w2\nbrokerctl workers replace w1 w2 --grace-ms 60000"},
    {"actions", "brokerctl actions --limit 20"},
    {"audit", "brokerctl audit --limit 20"},
    {"audit verify", "brokerctl audit verify\nbrokerctl audit verify -o json"},
    {"audit export",
     "brokerctl audit export >audit.jsonl\nbrokerctl audit export --since 2026-11-24 --tenant "
     "alice"},
    {"keys", "brokerctl keys"},
    {"keys create", "brokerctl keys create --tenant alice"},
    {"keys revoke", "brokerctl keys revoke 0011223344556677"},
    {"tenants", "brokerctl tenants\nbrokerctl tenants --watch --interval-ms 500 -o json"},
    {"tenants admit",
     "brokerctl tenants admit alice --max-concurrent 4 --max-blocks 4096\nbrokerctl tenants admit "
     "batch --tier scavenger"},
    {"tenants remove", "brokerctl tenants remove alice --revoke"},
    {"quarantine", "brokerctl quarantine"},
    {"quarantine release",
     "brokerctl quarantine release extent:5 --reason \"worker w0 was replaced\""},
    {"prefix", "brokerctl prefix"},
    {"prefix publish", "brokerctl prefix publish --file rules.txt --worker w1 --name rules"},
    {"explain", "brokerctl explain LeaseRevoked\nbrokerctl explain 28\nbrokerctl explain"},
    {"completion",
     "brokerctl completion bash >/usr/share/bash-completion/completions/brokerctl\nbrokerctl "
     "completion zsh >/usr/share/zsh/vendor-completions/_brokerctl\nbrokerctl completion fish "
     ">/usr/share/fish/vendor_completions.d/brokerctl.fish"},
    {"doctor", "brokerctl doctor\nbrokerctl doctor -o json"},
    {"plan",
     "brokerctl plan --model model.gguf --tenants 16 --context 4096\nbrokerctl plan --model "
     "model.gguf --memory 64GiB -o json"},
    {"man", "brokerctl man >/usr/share/man/man1/brokerctl.1"},
};

/// Finds a command such as "tenants admit" below `app`; null if `app` does not have it.
CLI::App* find_command(CLI::App& app, const std::string& path) {
  CLI::App* found = &app;
  for (const std::string& word : CLI::detail::split(path, ' ')) {
    const auto parts =
        found->get_subcommands([&](const CLI::App* it) { return it->check_name(word); });
    if (parts.empty()) return nullptr;
    found = parts.front();
  }
  return found;
}

}  // namespace

void add_examples(CLI::App& app) {
  for (const auto& [command, lines] : kExamples)
    if (CLI::App* const found = find_command(app, command))
      found->footer(kExamplesTitle + std::string(lines));
}

}  // namespace leasehold::brokerctl
