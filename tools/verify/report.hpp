/// A verdict in words, for an auditor who does not know Leasehold, and as JSON. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/verify/verify.hpp"

namespace leasehold::verify {

// Exit codes of leasehold-verify, besides those of every program (common/errc.hpp).
inline constexpr int kExitComplete = 0;
inline constexpr int kExitForged = 1;
inline constexpr int kExitIncomplete = 3;

int exit_code(const Verdict& verdict);

/// `result` is "complete" or "incomplete".
nlohmann::json report_json(const Verdict& verdict);
std::string report_text(const Verdict& verdict);

/// `fault`: what `verify` found. `result` is "forged".
nlohmann::json forged_json(const Error& fault);
std::string forged_text(const Error& fault);

/// What the words of a report mean.
std::string words_text();
/// What a sound certificate does not prove.
std::string limits_text();

}  // namespace leasehold::verify
