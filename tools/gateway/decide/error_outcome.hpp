/// Decides what an error of a host means for the text: whether another host may go on with it, or
/// whether the client must see the error. Pure.
#pragma once

#include <cstdint>

#include "common/errc.hpp"

namespace leasehold::gateway {

enum class ErrorOutcome : std::uint8_t {
  PassOn,  ///< The error is about the request or its tenant; every host would give it.
  Move,    ///< The error is about the host; another one may serve the request.
};

/// Whether a host has accepted the request before.
enum class TextStage : std::uint8_t {
  Starting,    ///< The client has received nothing, and can send the request again.
  Continuing,  ///< The client reads the text.
};

ErrorOutcome outcome_of(Errc code, TextStage stage);

/// The same for an HTTP status without a code that this version knows: a status from 500 on, 408
/// and 429 may be the host's; the others are the request's.
ErrorOutcome outcome_of_status(int status);

}  // namespace leasehold::gateway
