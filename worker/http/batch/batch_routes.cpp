#include "worker/http/batch/batch_routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "common/utf8.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "ipc/control/transport/excess.hpp"
#include "ipc/http/async_value.hpp"
#include "worker/batch/batch_store.hpp"
#include "worker/http/batch/batch_runner.hpp"
#include "worker/http/batch/file_routes.hpp"
#include "worker/http/on_pool.hpp"

namespace leasehold::http {
namespace {

using batch::BatchRecord;
using batch::BatchStore;
using boost::asio::awaitable;

constexpr std::int64_t kWindow_s = 24 * 3'600;  // completion_window "24h", the only one
constexpr std::size_t kMaxMetadata = 16;
constexpr std::size_t kMaxMetadataKey = 64;
constexpr std::size_t kMaxMetadataValue = 512;
constexpr std::array<std::string_view, 4> kEndpoints{"/v1/chat/completions", "/v1/completions",
                                                     "/v1/embeddings", "/v1/responses"};

Read<std::map<std::string, std::string>> metadata_of(const Field& field) {
  std::map<std::string, std::string> metadata;
  if (!field) return metadata;
  if (!field.is_object() || field.json().size() > kMaxMetadata)
    return field.refuse(fmt::format("metadata is not an object of at most {} texts", kMaxMetadata));
  for (const auto& [key, value] : field.json().items()) {
    const bool fits = value.is_string() && key.size() <= kMaxMetadataKey &&
                      value.template get_ref<const std::string&>().size() <= kMaxMetadataValue;
    if (!fits) {
      return field.refuse(
          fmt::format("metadata '{}' is not a text of at most {} bytes, with a "
                      "name of at most {}",
                      printable_excerpt(key), kMaxMetadataValue, kMaxMetadataKey));
    }
    metadata.emplace(key, value.template get<std::string>());
  }
  return metadata;
}

/// The batch that a body asks for, without its ids.
Read<BatchRecord> read_batch(const std::string& text, const Caller& caller,
                             std::int64_t now_unix_s) {
  const auto json = control::parse_request_json(text, "the body");
  if (!json) return std::unexpected(ApiError{json.error()});
  if (!json->is_object())
    return std::unexpected(ApiError{{Errc::BadRequest, "the body is not a JSON object; send one"}});
  const BodyFields body(*json);
  const Field endpoint = body["endpoint"];
  if (std::ranges::find(kEndpoints, endpoint.text()) == kEndpoints.end()) {
    return endpoint.refuse(fmt::format("endpoint is {}; send {}",
                                       endpoint ? shown(endpoint.json()) : "not sent",
                                       fmt::join(kEndpoints, " or ")));
  }
  const Field window = body["completion_window"];
  if (window.text() != "24h")
    return window.refuse("completion_window is not \"24h\", which is the only one");
  const Field input = body["input_file_id"];
  if (!input.is_text()) return input.refuse("input_file_id is not a text; send the id of a file");
  BatchRecord batch{.owner = caller.owner(),
                    .key = caller.key_id,
                    .batch_key = batch_key_of_hash(hash_of_api_key(caller.key)),
                    .endpoint = endpoint.text(),
                    .input_file = input.text(),
                    .expires_at = now_unix_s + kWindow_s};
  batch.metadata = TRY(metadata_of(body["metadata"]));
  batch.reached_at.emplace(batch::Status::Validating, now_unix_s);
  return batch;
}

Answer shown_batch(const BatchStore& store, const BatchRecord& batch) {
  return batch_answer(
      batch::to_api(batch, store.has_file(batch.output_file), store.has_file(batch.error_file)));
}

Answer not_cancellable(const BatchRecord& batch) {
  return plain_error(409, "batch_ended",
                     fmt::format("batch {} is {}; only a batch that has not ended can be cancelled",
                                 batch.id, batch::name(batch.status)));
}

Result<BatchRecord> add(BatchStore& store, BatchRecord batch) {
  const auto file = TRY(store.find_file(batch.owner, batch.input_file));
  if (file.purpose != "batch") {
    return fail(Errc::BadRequest, fmt::format("file {} has the results of a batch; upload one with "
                                              "purpose=batch",
                                              file.id));
  }
  return store.add_batch(std::move(batch));
}

/// Runs the batch that was stored, and returns the answer.
Answer run_added(Shared& shared, const Result<BatchRecord>& added) {
  if (!added) return batch_refusal(added.error());
  shared.batches->add(*added);
  return shown_batch(*shared.deps.batch_store, *added);
}

/// Stores the batch and answers with it.
awaitable<void> create(Shared& shared, BatchRecord wanted, HttpStream& stream) {
  BatchStore* const store = shared.deps.batch_store;
  AsyncValue<Result<BatchRecord>> added(*shared.deps.io);
  const TenantId tenant = wanted.owner.tenant;
  shared.pool.run(tenant, [store, batch = std::move(wanted), give = added.giver()]() mutable {
    give(add(*store, std::move(batch)));
  });
  const auto batch = co_await added.take();
  if (!batch) co_return;
  Answer answer = run_added(shared, *batch);
  co_await stream.send(std::move(answer));
}

}  // namespace

awaitable<void> serve_batch_creation(Shared& shared, const Caller& caller, RouteInput input,
                                     HttpStream& stream) {
  if (shared.deps.batch_store == nullptr) return stream.send(no_batches());
  auto batch = read_batch(input.body, caller, std::time(nullptr));
  if (!batch) return stream.send(error_answer(batch.error()));
  return create(shared, *std::move(batch), stream);
}

awaitable<void> serve_batches(Shared& shared, const Caller& caller, RouteInput input,
                              HttpStream& stream) {
  const BatchStore* const store = shared.deps.batch_store;
  if (store == nullptr) return stream.send(no_batches());
  const auto page_range = page_query(input.query, 20, 100);
  if (!page_range) return stream.send(error_answer({page_range.error(), "limit"}));
  const batch::RecordQuery query{.after = page_range->after, .limit = page_range->limit};
  const batch::Page<BatchRecord> page = store->list_batches(caller.owner(), query);
  std::vector<batch::Json> entries;
  for (const BatchRecord& each : page.records) {
    const BatchRecord batch = shared.batches->as_running(each);
    entries.push_back(batch::to_api(batch, store->has_file(batch.output_file),
                                    store->has_file(batch.error_file)));
  }
  return stream.send(batch_answer(list_of(std::move(entries), page.has_more)));
}

awaitable<void> serve_batch(Shared& shared, const Caller& caller, RouteInput input,
                            HttpStream& stream) {
  const BatchStore* const store = shared.deps.batch_store;
  if (store == nullptr) return stream.send(no_batches());
  const auto batch = store->find_batch(caller.owner(), input.id);
  if (!batch) return stream.send(batch_refusal(batch.error()));
  return stream.send(shown_batch(*store, shared.batches->as_running(*batch)));
}

/// A batch that was cancelled before is answered again; one that has ended otherwise is not.
awaitable<void> serve_batch_cancel(Shared& shared, const Caller& caller, RouteInput input,
                                   HttpStream& stream) {
  const BatchStore* const store = shared.deps.batch_store;
  if (store == nullptr) co_return co_await stream.send(no_batches());
  const auto batch = store->find_batch(caller.owner(), input.id);
  if (!batch) co_return co_await stream.send(batch_refusal(batch.error()));
  const auto cancelled = co_await shared.batches->cancel(batch->id);
  if (cancelled) co_return co_await stream.send(shown_batch(*store, *cancelled));
  const BatchRecord now = shared.batches->as_running(*batch);
  if (now.status == batch::Status::Cancelling || now.status == batch::Status::Cancelled)
    co_return co_await stream.send(shown_batch(*store, now));
  co_await stream.send(not_cancellable(now));
}

}  // namespace leasehold::http
