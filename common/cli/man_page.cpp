#include "common/cli/man_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "common/cli/version.hpp"
#include "common/errc.hpp"

namespace leasehold {
namespace {

/// Escapes text for roff, which reads a hyphen as a dash and a line that begins with a dot as a
/// macro.
std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char letter : text) {
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string option_entry(const CommandOption& option) {
  std::string value;
  if (!option.value.empty() && !option.is_positional) {
    value = option.values.empty() ? fmt::format(" \\fI{}\\fR", option.value)
                                  : fmt::format(" {}", fmt::join(option.values, "|"));
  }
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n",
                     roff(fmt::format("{}", fmt::join(option.names, ", "))), value,
                     roff(option.help));
}

std::string examples_of(const Command& command) {
  if (command.examples.empty()) return "";
  std::string text = ".PP\n.nf\n";
  std::istringstream lines(command.examples);
  for (std::string line; std::getline(lines, line);) text += roff(line) + "\n";
  return text + ".fi\n";
}

bool has_option(const Command& command, std::string_view name) {
  return std::ranges::any_of(command.options, [name](const CommandOption& option) {
    return std::ranges::find(option.names, name) != option.names.end();
  });
}

std::string command_section(std::string_view program, const Command& command) {
  std::string text = fmt::format(".SS {} {}\n{}\n", program, command.path, roff(command.help));
  for (const CommandOption& option : command.options)
    if (std::ranges::find(option.names, "--help") == option.names.end())
      text += option_entry(option);
  return text + examples_of(command);
}

std::string synopsis(std::string_view program, const Command& command) {
  std::string text = ".SH SYNOPSIS\n";
  if (!command.commands.empty()) {
    return text + fmt::format(
                      ".B {0}\n[\\fIoptions\\fR] \\fInoun\\fR [\\fIverb\\fR] "
                      "[\\fIoptions\\fR]\n.br\n.B {0}\n[\\fIoptions\\fR] "
                      "\\fIverb\\fR [\\fIoptions\\fR]\n",
                      program);
  }
  text += fmt::format(".B {}\n[\\fIoptions\\fR]", program);
  for (const CommandOption& option : command.options)
    if (option.is_positional) text += fmt::format(" [\\fI{}\\fR]", roff(option.names.front()));
  return text + "\n";
}

constexpr const char* kConfiguration =
    ".SH CONFIGURATION FILE\n\\fB\\-\\-config\\fR names a TOML file. Its keys are the long names "
    "of the options: \\fBlog\\-level = 'info'\\fR is \\fB\\-\\-log\\-level info\\fR. The command "
    "line precedes the file. \\fB\\-\\-print\\-config\\fR prints all keys.\n";

std::string exit_status() {
  std::string text =
      ".SH EXIT STATUS\n0: done. 2: wrong usage. Other errors have a code of their own:\n";
  for (int i = 0; i < kErrcCount; ++i) {
    const auto code = static_cast<Errc>(i);
    text += fmt::format(".TP\n\\fB{}\\fR {}\n{}\n", exit_code(code), name(code),
                        roff(error_meaning(code)));
  }
  return text;
}

}  // namespace

std::string man_page(std::string_view program, std::span<const Command> tree) {
  const Command& whole = tree.front();
  const std::string name = roff(program);
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"Leasehold {}\" \"Leasehold\"\n.SH NAME\n{} \\- {}\n{}"
      ".SH DESCRIPTION\n{}.{}\n.SH OPTIONS\n",
      title, version(), name, roff(whole.help), synopsis(name, whole), roff(whole.help),
      whole.commands.empty() ? "" : " A noun alone lists.");
  for (const CommandOption& option : whole.options) text += option_entry(option);
  if (!whole.commands.empty()) text += ".SH COMMANDS\n";
  for (const Command& command : tree.subspan(1)) text += command_section(name, command);
  if (has_option(whole, "--config")) text += kConfiguration;
  return text + exit_status() + ".SH SEE ALSO\n" +
         (program == "brokerctl" ? "systemctl(1)\n" : "brokerctl(1)\n");
}

}  // namespace leasehold
