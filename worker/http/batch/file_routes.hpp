/// The HTTP paths of files: `/v1/files`, `/v1/files/ID` and `/v1/files/ID/content`.
///
/// A file belongs to the tenant of the key that sent it. A file of another tenant is answered as
/// one that does not exist (404). An upload goes to the disk as it arrives, so it may be longer
/// than other bodies.
#pragma once

#include "ipc/http/http_url.hpp"
#include "worker/batch/record_json.hpp"
#include "worker/batch/record_list.hpp"
#include "worker/http/routes.hpp"

namespace leasehold::http {

boost::asio::awaitable<void> serve_upload(Shared& shared, const Caller& caller, RouteInput input,
                                          HttpStream& stream);
boost::asio::awaitable<void> serve_files(Shared& shared, const Caller& caller, RouteInput input,
                                         HttpStream& stream);
boost::asio::awaitable<void> serve_file(Shared& shared, const Caller& caller, RouteInput input,
                                        HttpStream& stream);
boost::asio::awaitable<void> serve_file_content(Shared& shared, const Caller& caller,
                                                RouteInput input, HttpStream& stream);
boost::asio::awaitable<void> serve_file_removal(Shared& shared, const Caller& caller,
                                                RouteInput input, HttpStream& stream);

/// The list object with these entries.
batch::Json list_of(std::vector<batch::Json> entries, bool has_more);

/// The error for a worker without `--batch-dir`.
Answer no_batches();
Answer batch_answer(const batch::Json& json);
/// Returns what `refusal` returns, with OpenAI's code for an id that does not exist.
Answer batch_refusal(const Error& error);

}  // namespace leasehold::http
