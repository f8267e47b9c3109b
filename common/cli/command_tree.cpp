#include "common/cli/command_tree.hpp"

#include <CLI/CLI.hpp>

namespace leasehold {
namespace {

/// The values of a closed list, which CLI11 writes into the type: "TEXT:{a,b}".
std::vector<std::string> closed_list(const std::string& type) {
  const auto begin = type.find('{');
  const auto end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

CommandOption describe(const CLI::Option& option) {
  const bool is_flag = option.get_items_expected_max() == 0;
  const std::string type = is_flag ? "" : option.get_type_name();
  CommandOption described{.value = type.substr(0, type.find(':')),
                          .values = closed_list(type),
                          .help = option.get_description(),
                          .is_positional = option.get_positional()};
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  if (described.is_positional) described.names = {option.get_name(true)};
  return described;
}

/// Also adds the options of groups, which CLI11 stores as commands without a name.
void add_options(const CLI::App& app, std::vector<CommandOption>& options) {
  for (const CLI::Option* option : app.get_options()) options.push_back(describe(*option));
  for (const CLI::App* part : app.get_subcommands({}))
    if (part->get_name().empty()) add_options(*part, options);
}

void add(const CLI::App& app, const std::string& path, std::vector<Command>& tree) {
  Command command{.path = path,
                  .help = app.get_description(),
                  .examples = app.get_footer(),
                  .aliases = app.get_aliases()};
  if (command.examples.starts_with(kExamplesTitle))
    command.examples.erase(0, std::string_view(kExamplesTitle).size());
  for (const CLI::App* part : app.get_subcommands({}))
    if (!part->get_name().empty()) command.commands.push_back(part->get_name());
  add_options(app, command.options);
  tree.push_back(std::move(command));
  for (const CLI::App* part : app.get_subcommands({})) {
    if (part->get_name().empty()) continue;
    add(*part, path + (path.empty() ? "" : " ") + part->get_name(), tree);
  }
}

}  // namespace

std::vector<Command> command_tree(const CLI::App& app) {
  std::vector<Command> tree;
  add(app, "", tree);
  return tree;
}

}  // namespace leasehold
