#include "tools/brokerctl/arguments/prefix_arguments.hpp"

#include <CLI/CLI.hpp>

#include "common/cli/command_line.hpp"
#include "common/machine/text_file.hpp"
#include "common/utf8.hpp"

namespace leasehold::brokerctl {
namespace {

Result<void> check(const std::string& file, const std::string& text) {
  const std::string source = file == "-" ? "stdin" : file;
  if (text.empty())
    return fail(Errc::BadRequest, source + " is empty; --file names the text to publish");
  if (is_utf8(text)) return {};
  return fail(Errc::BadRequest, source + " is not UTF-8 text; --file takes no other encoding");
}

}  // namespace

CLI::App* PrefixArguments::add_publish(CLI::App& noun) {
  CLI::App* verb =
      noun.add_subcommand("publish",
                          "Compute a text once for the prompts of all tenants that begin with it; "
                          "`brokerctl revoke LEASE` ends it");
  verb->group("Verbs");
  verb->add_option("--file", file_,
                   "File with the UTF-8 text that prompts start with; - reads stdin")
      ->required();
  verb->add_option("--worker", worker_, "Worker whose tenants share the text")
      ->required()
      ->check(check_name);
  verb->add_option("--name", name_, "Name shown in lists")->check(check_name);
  return verb;
}

PublishPrefix PrefixArguments::publish(RequestId request_id) const {
  return {.file = file_,
          .message = {
              .worker = worker_, .text = {}, .name = name_, .request_id = std::move(request_id)}};
}

Result<std::string> read_prefix_text(const std::string& file) {
  std::string text = TRY(file == "-" ? read_text_stdin(wire::PrefixPublish::kMaxTextBytes)
                                     : read_text_file(file, wire::PrefixPublish::kMaxTextBytes));
  TRY(check(file, text));
  return text;
}

}  // namespace leasehold::brokerctl
