#include "tests/checks/bench/certificate_bench.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "broker/journal/sqlite_journal.hpp"
#include "common/cli/number_option.hpp"
#include "ipc/client/parse_message.hpp"
#include "ipc/control/messages/audit/audit_state.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/holders.hpp"
#include "tests/checks/bench/light_worker.hpp"
#include "tests/checks/bench/operator_commands.hpp"
#include "tests/checks/bench/system.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/verify/verify.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr const char* kCertified = "certified";
constexpr const char* kRevokedTenant = "victim";
constexpr std::uint32_t kCyclesAtOnce = 16;
constexpr std::uint32_t kCertificateStreams = 2;
constexpr std::uint64_t kLeaseBytes = 2 << 20;
constexpr Duration kCertificateTimeout = std::chrono::seconds(120);
constexpr Duration kRevocationPace = std::chrono::milliseconds(20);  ///< Between two revocations.
constexpr std::uint32_t kLeasesOfBatch = 500;

/// Acquires and releases the leases, and waits until the audit chain counts them as erased.
Result<void> erase_leases(System& system, std::uint32_t count) {
  TRY(system.admit(kCertified));
  TRY(cycle_leases({.broker_socket = system.broker_socket(),
                    .tenant = kCertified,
                    .count = count,
                    .in_flight = kCyclesAtOnce}));
  control::Client client = TRY(control::Client::connect(system.broker_socket()));
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + kCertificateTimeout; clock.now() < deadline;) {
    const auto status = TRY(client.call("status", {})).body;
    const auto audit = TRY(client::parse_message<wire::StatusOfAudit>(status)).audit;
    if (audit && audit->leases.erased >= count) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fail(Errc::TimedOut, "the leases are not erased after 2 minutes");
}

Result<audit::PublicKey> key_of(OperatorCommands& commands) {
  std::string text = TRY(commands.run(brokerctl::SigningKey{}));
  text.pop_back();  // the end of the line
  return audit::PublicKey::from_text(text);
}

Result<Json> measure_made_certificate(const CertificateBenchConfig& config) {
  const auto system = TRY(System::start(SystemConfig{.bin_dir = config.bin_dir, .journal = true}));
  const auto worker = TRY(LightWorker::attach(system->broker_socket()));
  TRY(erase_leases(*system, config.leases));
  const auto broker_ns = [&] { return process_time_ns(system->broker_pid()); };
  OperatorCommands commands = TRY(OperatorCommands::connect(system->broker_socket(), broker_ns));
  const audit::PublicKey key = TRY(key_of(commands));

  const double broker_before = broker_ns();
  const double before = thread_time_ns();
  const std::string text = TRY(commands.run(brokerctl::MakeCertificate{.tenant = kCertified}));
  const double made = thread_time_ns();
  const double broker_used = broker_ns() - broker_before;
  const verify::Verdict verdict = TRY(verify::verify(text, {.key = key}));
  const double checked = thread_time_ns();
  return Json{{"leases", verdict.leases.size()},
              {"megabytes", static_cast<double>(text.size()) / 1e6},
              {"make_cpu_s", (made - before + broker_used) / 1e9},
              {"verify_cpu_s", (checked - made) / 1e9},
              {"longest_call_ms", commands.longest_call_ns() / 1e6}};
}

/// Makes certificates on a thread of its own until it ends.
class Certificates {
 public:
  explicit Certificates(const std::string& socket)
      : thread_([this, socket](const std::stop_token& stop) { result_ = make(socket, stop); }) {}

  /// Returns how many were made.
  Result<double> finish() {
    thread_.request_stop();
    thread_.join();
    return result_;
  }

 private:
  static Result<double> make(const std::string& socket, const std::stop_token& stop) {
    OperatorCommands commands = TRY(OperatorCommands::connect(socket));
    double count = 0;
    do {
      (void)TRY(commands.run(brokerctl::MakeCertificate{.tenant = kCertified}));
      ++count;
    } while (!stop.stop_requested());
    return count;
  }

  Result<double> result_ = 0;
  std::jthread thread_;  // last, so that it ends before the result does
};

/// Samples "NAME_ms" of the calls and "NAME_gap_ms" between tokens.
Result<void> revoke_beside(System& system, TenantPool& streams, std::span<const LeaseId> leases,
                           const std::string& name, Samples& samples) {
  (void)streams.take_gaps_us();
  const SystemClock clock;
  for (const LeaseId lease : leases) {
    const TimePoint begin = clock.now();
    TRY(system.revoke(lease));
    samples[name + "_ms"].push_back(ms_of(clock.now() - begin));
    std::this_thread::sleep_for(kRevocationPace);
  }
  for (const double gap_us : streams.take_gaps_us())
    samples[name + "_gap_ms"].push_back(gap_us / 1e3);
  return {};
}

Result<Json> measure_beside_certificates(const CertificateBenchConfig& config) {
  const std::uint32_t victims = 2 * config.revocations;
  const auto system =
      TRY(System::start(SystemConfig{.bin_dir = config.bin_dir,
                                     .model_path = config.model_path,
                                     .capacity = std::to_string((victims + 64) * kLeaseBytes),
                                     .journal = true}));
  TRY(erase_leases(*system, config.leases));
  TRY(system->admit_pool(kCertificateStreams));
  TRY(system->admit(kRevokedTenant));
  TenantPool streams({.broker_socket = system->broker_socket(), .clients = kCertificateStreams});
  TRY(streams.await_running(kCertificateStreams, kCertificateTimeout));
  Samples samples;
  const auto both = [&](const std::vector<LeaseId>& leases) -> Result<void> {
    const auto all = std::span(leases);
    TRY(revoke_beside(*system, streams, all.first(config.revocations), "calm", samples));
    Certificates certificates(system->broker_socket());
    TRY(revoke_beside(*system, streams, all.subspan(config.revocations), "beside", samples));
    samples["certificates"] = {TRY(certificates.finish())};
    return {};
  };
  TRY(hold_leases({.broker_socket = system->broker_socket(),
                   .tenant = kRevokedTenant,
                   .count = victims,
                   .in_flight = 4},
                  both));
  const FigureRow rows[] = {{"calm_ms"},
                            {"beside_ms"},
                            {"calm_gap_ms"},
                            {"beside_gap_ms"},
                            {"certificates", Statistic::Least}};
  Json report;
  add_figures(report, samples, rows);
  return report;
}

/// The two records of one lease, as a decision of the broker writes them.
void add_lease(journal::Batch& batch, std::uint64_t number) {
  journal::LeaseGrantedRow granted;
  granted.record.lease = {.slot = static_cast<std::uint32_t>(number % 4096), .generation = number};
  granted.record.tenant = kCertified;
  granted.record.worker = "bench";
  granted.record.attachment = {1};
  granted.record.opens = true;
  granted.record.granted.push_back({.extents = 1, .bytes = kLeaseBytes});
  journal::LeaseErasedRow erased;
  erased.record.lease = granted.record.lease;
  erased.record.tenant = kCertified;
  erased.record.worker = "bench";
  erased.record.scope = wire::LeaseScope::Tenant;
  erased.record.reason = "released";
  erased.record.proof = "LaunchQuiet";
  erased.record.settled.push_back({.extents = 1, .bytes = kLeaseBytes});
  erased.record.state = wire::ErasureState::Erased;
  batch.rows.emplace_back(std::move(granted));
  batch.rows.emplace_back(std::move(erased));
}

/// The broker does not run.
Result<void> write_records(const std::string& state_dir, std::uint64_t records) {
  const auto journal = TRY(journal::SqliteJournal::open(state_dir, {.records = 2 * records}));
  for (std::uint64_t lease = 1; 2 * lease < records;) {
    journal::Batch batch;
    for (std::uint32_t i = 0; i < kLeasesOfBatch; ++i) add_lease(batch, lease++);
    TRY(journal->write(batch));
  }
  return {};
}

Result<Json> measure_audited_start(const CertificateBenchConfig& config) {
  const TemporaryDirectory state = TRY(TemporaryDirectory::create("records"));
  const auto system = TRY(System::start(
      SystemConfig{.bin_dir = config.bin_dir, .broker_options = {"--state-dir", state.path()}}));
  system->kill_broker();
  TRY(write_records(state.path(), config.records));
  const TimePoint begin = SystemClock().now();
  TRY(system->start_broker());
  const double seconds = ms_of(SystemClock().now() - begin) / 1e3;
  const double cpu_s = process_time_ns(system->broker_pid()) / 1e9;
  const auto size_bytes = std::filesystem::file_size(state.file("journal.db"));
  return Json{{"records", config.records},
              {"megabytes", static_cast<double>(size_bytes) / 1e6},
              {"cpu_s", cpu_s},
              {"seconds", seconds}};
}

}  // namespace

void describe_certificates(CLI::App& app, CertificateBenchConfig& config) {
  app.add_option("--bin-dir", config.bin_dir, "Directory of the programs")->required();
  app.add_option("--model", config.model_path, "GGUF model")->required();
  add_number_option(app, "--leases", config.leases, "Leases in the certificate", 1, 1'000'000);
  add_number_option(app, "--revocations", config.revocations,
                    "Revocations without certificates, and as many beside them", 1, 1'000);
  add_number_option(app, "--records", config.records,
                    "Records of the chain that a broker starts with", 1'000, 10'000'000);
}

Result<Json> measure_certificates(const CertificateBenchConfig& config) {
  Json report;
  report["made"] = TRY(measure_made_certificate(config));
  report["beside"] = TRY(measure_beside_certificates(config));
  report["start"] = TRY(measure_audited_start(config));
  return Json{{"certificates", std::move(report)}};
}

}  // namespace leasehold::bench
