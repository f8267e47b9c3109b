#include "tools/brokerctl/local_commands.hpp"

#include <CLI/CLI.hpp>

#include "tools/brokerctl/completion.hpp"
#include "tools/brokerctl/explain_error.hpp"
#include "tools/brokerctl/man_page.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr const char* kGroup = "Without a broker";

std::string completion(const std::string& shell, std::span<const Command> tree) {
  if (shell == "zsh") return zsh_completion(tree);
  return shell == "fish" ? fish_completion(tree) : bash_completion(tree);
}

}  // namespace

void LocalCommands::add(CLI::App& app) {
  app.add_subcommand("explain", "What an error code means, and what to do next")
      ->group(kGroup)
      ->add_option("code", code_, "Name or exit code, such as LeaseRevoked or 28; default: all");
  app.add_subcommand("completion", "Script that completes commands and options in a shell")
      ->group(kGroup)
      ->add_option("shell", shell_, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app.add_subcommand("man", "Manual page brokerctl(1)")->group(kGroup);
}

Result<std::optional<PrintText>> LocalCommands::text(const CLI::App& app,
                                                     const std::string& command) const {
  if (command == "explain") return TRY(explain_error(code_));
  if (command == "completion") return PrintText{.text = completion(shell_, command_tree(app))};
  if (command == "man") return PrintText{.text = man_page(command_tree(app))};
  return std::nullopt;
}

}  // namespace leasehold::brokerctl
