/// The paths that report the state of the worker without a key.
///
/// `/health`: readiness, 200 or 503 with the reason. `/health/live`: 200 while the process answers.
/// `/leasehold/host`: what a gateway needs to place requests; 403 unless a trusted proxy asks for
/// itself, without X-Forwarded-For.
#pragma once

#include <string>
#include <string_view>

#include "worker/http/http_shared.hpp"

namespace leasehold::http {

/// Lines of the head of each answer, each with its "\r\n": the name of the host, and of a member of
/// a cell its incarnation.
std::string host_fields(const Shared& shared);

bool is_state_path(std::string_view path);

/// The answer to GET. Precondition: is_state_path(head.path()).
Answer state_answer(const Shared& shared, const Head& head, const PeerAddress& peer);

}  // namespace leasehold::http
