#include "tools/brokerctl/man_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "common/errc.hpp"
#include "common/version.hpp"

namespace leasehold::brokerctl {
namespace {

/// A hyphen would become a dash, and a line that begins with a dot a macro.
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

std::string command_section(const Command& command) {
  std::string text = fmt::format(".SS brokerctl {}\n{}\n", command.path, roff(command.help));
  for (const CommandOption& option : command.options)
    if (std::ranges::find(option.names, "--help") == option.names.end())
      text += option_entry(option);
  return text + examples_of(command);
}

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

std::string man_page(std::span<const Command> tree) {
  const Command& program = tree.front();
  std::string text = fmt::format(
      ".TH BROKERCTL 1 \"\" \"Leasehold {}\" \"Leasehold\"\n"
      ".SH NAME\nbrokerctl \\- {}\n"
      ".SH SYNOPSIS\n.B brokerctl\n[\\fIoptions\\fR] \\fInoun\\fR [\\fIverb\\fR] "
      "[\\fIoptions\\fR]\n"
      ".br\n.B brokerctl\n[\\fIoptions\\fR] \\fIverb\\fR [\\fIoptions\\fR]\n"
      ".SH DESCRIPTION\n{}. A noun alone lists.\n.SH OPTIONS\n",
      version(), roff(program.help), roff(program.help));
  for (const CommandOption& option : program.options) text += option_entry(option);
  text += ".SH COMMANDS\n";
  for (const Command& command : tree.subspan(1)) text += command_section(command);
  return text + exit_status() + ".SH SEE ALSO\nsystemctl(1)\n";
}

}  // namespace leasehold::brokerctl
