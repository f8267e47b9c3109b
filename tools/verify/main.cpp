/// leasehold-verify: checks an erasure certificate, without a broker or a network.
///
/// Exit codes: those of tools/verify/report.hpp, 2 wrong usage, otherwise the code of the error
/// (common/errc.hpp).
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/cli/command_line.hpp"
#include "common/cli/parse_check.hpp"
#include "common/cli/version.hpp"
#include "common/machine/text_file.hpp"
#include "tools/cli/json_text.hpp"
#include "tools/cli/utc_time.hpp"
#include "tools/verify/report.hpp"

namespace leasehold::verify {
namespace {

constexpr std::size_t kMaxHeadBytes = 1 << 20;
constexpr std::size_t kMaxKeyBytes = 4096;

struct Options {
  std::string certificate;
  std::string key;
  std::optional<std::string> head;
  std::optional<std::string> since;
  std::string output = "text";
};

void declare(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "leasehold-verify " + std::string(version()));
  app.add_option("certificate", options.certificate,
                 "File of the certificate, as `brokerctl audit certificate` writes it")
      ->required();
  app.add_option("--key", options.key,
                 "The operator's public key, got in a way that you trust: a file, or the "
                 "line `ed25519:...` that `brokerctl audit key` prints")
      ->required();
  app.add_option("--head", options.head,
                 "File of a signed head that you kept (`brokerctl audit head`): also check that no "
                 "record up to it was changed or removed");
  app.add_option("--since", options.since,
                 "Also check that the certificate is about all leases granted from this time on, "
                 "in UTC, such as 2026-11-24 or 2026-11-24T18:30:00Z")
      ->check(checked(cli::parse_utc_ms));
  app.add_option("-o,--output", options.output, "Format of the report")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.footer(
      "A certificate shows what became of the memory that one tenant leased: which leases\nwere "
      "granted since a day, which of them are erased and how that was shown, and\nwhich are "
      "not. The operator makes it, with brokerctl.\n\nExit codes: 0 all memory of the tenant is "
      "erased; 1 the certificate is forged "
      "or\ndamaged; 2 wrong usage; 3 the certificate is sound, and some memory is not erased.\n\n" +
      words_text() + limits_text());
}

Result<audit::PublicKey> read_key(const std::string& key) {
  if (key.starts_with("ed25519:")) return audit::PublicKey::from_text(key);
  std::string text = TRY(read_text_file(key, kMaxKeyBytes));
  text.erase(std::min(text.find_last_not_of(" \r\n") + 1, text.size()));
  return audit::PublicKey::from_text(text);
}

/// A file that cannot be read is an error. What is wrong with the certificate is an answer.
Result<int> run(const Options& options) {
  const std::string certificate =
      TRY(read_text_file(options.certificate, audit::ErasureCertificate::kMaxBytes));
  Expected expected;
  expected.key = TRY(read_key(options.key));
  if (options.head) expected.kept_head = TRY(read_text_file(*options.head, kMaxHeadBytes));
  if (options.since) expected.since_unix_ms = TRY(cli::parse_utc_ms(*options.since));
  const bool is_json = options.output == "json";
  const auto verdict = verify(certificate, expected);
  if (!verdict) {
    const Error& fault = verdict.error();
    std::cout << (is_json ? cli::json_text(forged_json(fault)) + '\n'
                          : printable(forged_text(fault), "\n"));
    return kExitForged;
  }
  std::cout << (is_json ? cli::json_text(report_json(*verdict)) + '\n'
                        : printable(report_text(*verdict), "\n"));
  return exit_code(*verdict);
}

int run(int argc, char** argv) {
  CLI::App app("Check a certificate of erased memory, without a broker or a network",
               "leasehold-verify");
  Options options;
  declare(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const Result<int> exit_code = run(options);
  if (exit_code) return finish_program(app.get_name(), *exit_code);
  const int code = print_error(app.get_name(), exit_code.error());
  return exit_code.error().code == Errc::BadRequest ? kExitUsage : code;
}

}  // namespace
}  // namespace leasehold::verify

int main(int argc, char** argv) {
  return leasehold::verify::run(argc, argv);
}
