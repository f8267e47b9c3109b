/// Decides what an error of a host means for the text: whether another host may go on with it, or
/// whether the client must see the error. Pure.
#pragma once

#include <cstdint>

#include "common/errc.hpp"

namespace leasehold::gateway {

enum class ErrorOutcome : std::uint8_t {
  PassOn,  ///< The error is about the request or its tenant; every host would give it.
  Move,    ///< The error is about the host; another one may serve the request.
  Leave,   ///< The same, and this host refuses the request whenever it is asked.
};

/// Which host gives the error.
enum class TextStage : std::uint8_t {
  Starting,  ///< No host has accepted the request: the client can send it again.
  Moving,    ///< An earlier host has accepted the request, and this one refuses it.
  Running,   ///< This host has accepted the request.
};

ErrorOutcome outcome_of(Errc code, TextStage stage);

/// The same for an HTTP status without a code that this version knows: a status from 500 on, 408
/// and 429 may be the host's; the others are the request's.
ErrorOutcome outcome_of_status(int status);

}  // namespace leasehold::gateway
