#include "tools/brokerctl/prefix_arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "common/command_line.hpp"
#include "common/utf8.hpp"

namespace leasehold::brokerctl {
namespace {

/// At most one byte more than a text may have.
std::string read_some(std::istream& in) {
  std::string text(wire::PrefixPublish::kMaxTextBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

Result<void> check(const std::string& file, const std::string& text) {
  if (text.empty()) return fail(Errc::BadRequest, fmt::format("'{}' is empty", file));
  if (text.size() > wire::PrefixPublish::kMaxTextBytes) {
    return fail(Errc::BadRequest, fmt::format("'{}' has more than {} bytes; shorten it", file,
                                              wire::PrefixPublish::kMaxTextBytes));
  }
  if (is_utf8(text)) return {};
  return fail(Errc::BadRequest, fmt::format("'{}' is not UTF-8 text; convert it", file));
}

}  // namespace

CLI::App* PrefixArguments::add_publish(CLI::App& noun) {
  CLI::App* verb =
      noun.add_subcommand("publish",
                          "Compute a text once for the prompts of all tenants that begin with it; "
                          "`brokerctl revoke LEASE` ends it");
  verb->group("Verbs");
  verb->add_option("--file", file_, "UTF-8 text, as prompts begin; - reads standard input")
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
  std::ifstream opened;
  if (file != "-") {
    opened.open(file, std::ios::binary);
    if (!opened)
      return fail(Errc::FileNotFound, fmt::format("cannot open '{}'; check the path", file));
  }
  std::istream& in = file == "-" ? std::cin : opened;
  std::string text = read_some(in);
  if (in.bad()) return fail(Errc::SystemError, fmt::format("cannot read '{}'", file));
  TRY(check(file, text));
  return text;
}

}  // namespace leasehold::brokerctl
