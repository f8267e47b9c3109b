/// What certificates of erased memory cost, and what a long audit chain costs a broker.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace CLI {
class App;
}

namespace leasehold::bench {

struct CertificateBenchConfig {
  std::string bin_dir;
  std::string model_path;
  std::uint32_t leases = 10'000;  ///< Of the certificate's tenant, all of them erased.
  std::uint32_t revocations = 50;
  std::uint64_t records = 1'000'000;  ///< Of the chain that a broker starts with.
};

/// Adds the options. `config` outlives the parse.
void describe_certificates(CLI::App& app, CertificateBenchConfig& config);

/// {"certificates": {"made", "beside", "start"}}. Errors: those of System and of the broker.
///
/// made: one certificate: "leases", "megabytes", CPU time of brokerctl's code and of the broker
///   ("make_cpu_s"), of the check ("verify_cpu_s"), and of the broker in its longest call
///   ("longest_call_ms"), for which its loop does nothing else.
/// beside: revocations of another tenant's leases while tenants stream, from the call to its reply
///   ("calm_ms"), and the same while certificates are made ("beside_ms"), with their number
///   ("certificates"); the gaps between tokens meanwhile ("calm_gap_ms", "beside_gap_ms").
/// start: CPU and other time of a broker's start with a chain of "records" records of
///   "megabytes": "cpu_s", "seconds".
Result<nlohmann::json> measure_certificates(const CertificateBenchConfig& config);

}  // namespace leasehold::bench
