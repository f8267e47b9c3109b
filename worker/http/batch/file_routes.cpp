#include "worker/http/batch/file_routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include "common/cli/terminal_text.hpp"
#include "common/utf8.hpp"
#include "ipc/http/async_value.hpp"
#include "worker/batch/batch_store.hpp"
#include "worker/batch/disk_file.hpp"
#include "worker/batch/upload_form.hpp"
#include "worker/http/batch/batch_runner.hpp"
#include "worker/http/on_pool.hpp"

namespace leasehold::http {
namespace {

using batch::BatchStore;
using batch::FileRecord;
using boost::asio::awaitable;

constexpr std::size_t kWriteBytes = 256 << 10;  // written at once, on a thread of the pool
constexpr std::size_t kMostFiles = 1'000;       // of one page
constexpr std::int64_t kLeastLife_s = 3'600;
constexpr std::int64_t kMostLife_s = 30ll * 24 * 3'600;

/// An upload in progress. Used by one thread at a time.
struct Receiving {
  std::unique_ptr<BatchStore::Upload> upload;
  std::unique_ptr<batch::UploadForm> form;
};

std::unexpected<ApiError> refuse_field(std::string param, std::string detail) {
  return std::unexpected(ApiError{{Errc::BadRequest, std::move(detail)}, std::move(param)});
}

/// When the file expires: the fields expires_after[anchor] and expires_after[seconds]. 0: not sent.
Read<std::int64_t> expiry_of(const std::map<std::string, std::string>& fields,
                             std::int64_t now_unix_s) {
  const auto anchor = fields.find("expires_after[anchor]");
  if (anchor != fields.end() && anchor->second != "created_at") {
    return refuse_field("expires_after/anchor", "expires_after[anchor] is not \"created_at\"");
  }
  const auto sent = fields.find("expires_after[seconds]");
  if (sent == fields.end()) return 0;
  std::int64_t seconds = 0;
  const std::string& text = sent->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  if (is_number && seconds >= kLeastLife_s && seconds <= kMostLife_s) return now_unix_s + seconds;
  return refuse_field("expires_after/seconds",
                      fmt::format("expires_after[seconds] is '{}'; send {} to {}",
                                  printable_excerpt(text), kLeastLife_s, kMostLife_s));
}

/// Keeps the file of a form that has arrived.
Answer keep(BatchStore& store, const Receiving& received) {
  if (const auto whole = received.form->finish(); !whole) return refusal(whole.error());
  const auto& fields = received.form->fields();
  const auto purpose = fields.find("purpose");
  if (purpose == fields.end() || purpose->second != "batch") {
    const std::string sent = purpose == fields.end() ? "" : printable_excerpt(purpose->second);
    return error_answer({{Errc::BadRequest,
                          fmt::format("purpose is '{}'; this worker keeps files for batches only: "
                                      "send purpose=batch",
                                      sent)},
                         "purpose"});
  }
  const std::int64_t now = std::time(nullptr);
  const auto expires_at = expiry_of(fields, now);
  if (!expires_at) return error_answer(expires_at.error());
  const auto file = store.keep(*received.upload, received.form->filename(), now, *expires_at);
  return file ? batch_answer(batch::to_api(*file)) : batch_refusal(file.error());
}

Result<Receiving> begin(BatchStore& store, const batch::Owner& owner,
                        std::string_view content_type) {
  const std::string boundary = TRY(batch::boundary_of(content_type));
  Receiving receiving{.upload = TRY(store.begin_upload(owner)), .form = nullptr};
  receiving.form = std::make_unique<batch::UploadForm>(
      boundary,
      [upload = receiving.upload.get()](std::string_view bytes) { return upload->add(bytes); });
  return receiving;
}

/// Reads and drops the rest of a body, so that a client that sends first and reads later gets the
/// refusal.
awaitable<void> drop_body(FileTransfer& transfer) {
  for (;;) {
    const auto piece = co_await transfer.read_piece();
    if (!piece || piece->empty()) co_return;
  }
}

/// Reads the body into the form. Returns the refusal, if there is one.
awaitable<Result<void>> receive(Shared& shared, const TenantId& tenant, FileTransfer& transfer,
                                std::shared_ptr<Receiving> receiving) {
  bool is_whole = false;
  while (!is_whole) {
    std::string bytes;
    while (!is_whole && bytes.size() < kWriteBytes) {
      auto piece = co_await transfer.read_piece();
      if (!piece) co_return std::unexpected(piece.error());
      is_whole = piece->empty();
      bytes += *piece;
    }
    AsyncValue<Result<void>> written(*shared.deps.io);
    shared.pool.run(tenant, [receiving, bytes = std::move(bytes), give = written.giver()] {
      give(receiving->form->add(bytes));
    });
    const auto result = co_await written.take();
    if (!result) co_return fail(Errc::Draining, "this worker is stopping");
    if (!*result) co_return std::unexpected(result->error());
  }
  co_return Result<void>{};
}

awaitable<void> take_upload(Shared& shared, const Caller& caller, RouteInput input,
                            HttpStream& stream) {
  BatchStore* const store = shared.deps.batch_store;
  if (store == nullptr) {
    co_await drop_body(*input.transfer);
    co_return co_await stream.send(no_batches());
  }
  auto begun = begin(*store, caller.owner(), input.content_type);
  if (!begun) {
    co_await drop_body(*input.transfer);
    co_return co_await stream.send(batch_refusal(begun.error()));
  }
  auto receiving = std::make_shared<Receiving>(*std::move(begun));
  const Result<void> received = co_await receive(shared, caller.tenant, *input.transfer, receiving);
  if (!received) {
    co_await drop_body(*input.transfer);
    co_return co_await stream.send(batch_refusal(received.error()));
  }
  AsyncValue<Answer> kept(*shared.deps.io);
  shared.pool.run(caller.tenant,
                  [store, receiving, give = kept.giver()] { give(keep(*store, *receiving)); });
  auto answer = co_await kept.take();
  if (answer) co_await stream.send(*std::move(answer));
}

}  // namespace

Answer no_batches() {
  return plain_error(404, "not_found",
                     "this worker keeps no files and runs no batches; start it with --batch-dir");
}

Answer batch_answer(const batch::Json& json) {
  return {.body =
              escape_controls(json.dump(-1, ' ', false, batch::Json::error_handler_t::replace))};
}

Answer batch_refusal(const Error& error) {
  std::string_view code;
  if (error.code == Errc::UnknownRequest) code = "not_found";
  if (error.code == Errc::MessageTooLarge) code = "file_quota_exceeded";
  return error_answer({error, {}, code});
}

batch::Json list_of(std::vector<batch::Json> entries, bool has_more) {
  batch::Json list{{"object", "list"}, {"has_more", has_more}};
  list["first_id"] = entries.empty() ? batch::Json(nullptr) : entries.front()["id"];
  list["last_id"] = entries.empty() ? batch::Json(nullptr) : entries.back()["id"];
  list["data"] = std::move(entries);
  return list;
}

/// A coroutine of this namespace, because its frame has a type of this namespace.
awaitable<void> serve_upload(Shared& shared, const Caller& caller, RouteInput input,
                             HttpStream& stream) {
  return take_upload(shared, caller, std::move(input), stream);
}

awaitable<void> serve_files(Shared& shared, const Caller& caller, RouteInput input,
                            HttpStream& stream) {
  BatchStore* const store = shared.deps.batch_store;
  if (store == nullptr) return stream.send(no_batches());
  const auto page_range = page_query(input.query, kMostFiles, 10'000);
  if (!page_range) return stream.send(error_answer({page_range.error(), "limit"}));
  const batch::RecordQuery query{.after = page_range->after,
                                 .limit = page_range->limit,
                                 .is_oldest_first = query_value(input.query, "order") == "asc",
                                 .purpose = query_value(input.query, "purpose")};
  const batch::Page<FileRecord> page = store->list_files(caller.owner(), query);
  std::vector<batch::Json> entries;
  for (const FileRecord& file : page.records) entries.push_back(batch::to_api(file));
  return stream.send(batch_answer(list_of(std::move(entries), page.has_more)));
}

awaitable<void> serve_file(Shared& shared, const Caller& caller, RouteInput input,
                           HttpStream& stream) {
  BatchStore* const store = shared.deps.batch_store;
  if (store == nullptr) return stream.send(no_batches());
  const auto file = store->find_file(caller.owner(), input.id);
  return stream.send(file ? batch_answer(batch::to_api(*file)) : batch_refusal(file.error()));
}

awaitable<void> serve_file_removal(Shared& shared, const Caller& caller, RouteInput input,
                                   HttpStream& stream) {
  BatchStore* const store = shared.deps.batch_store;
  if (store == nullptr) return stream.send(no_batches());
  const auto removed = store->remove_file(caller.owner(), input.id);
  if (!removed) return stream.send(batch_refusal(removed.error()));
  return stream.send(batch_answer({{"id", input.id}, {"object", "file"}, {"deleted", true}}));
}

awaitable<void> serve_file_content(Shared& shared, const Caller& caller, RouteInput input,
                                   HttpStream& stream) {
  BatchStore* const store = shared.deps.batch_store;
  if (store == nullptr) co_return co_await stream.send(no_batches());
  const auto file = store->find_file(caller.owner(), input.id);
  if (!file) co_return co_await stream.send(batch_refusal(file.error()));
  auto opened = store->read_file(file->id);
  if (!opened) co_return co_await stream.send(batch_refusal(opened.error()));
  const auto fd = std::make_shared<UniqueFd>(*std::move(opened));
  FileTransfer& transfer = *input.transfer;
  co_await transfer.send_head(file->size_bytes, "application/jsonl");
  for (std::uint64_t at = 0; at < file->size_bytes && !stream.is_gone();) {
    const std::size_t size = std::min<std::uint64_t>(kWriteBytes, file->size_bytes - at);
    AsyncValue<Result<std::string>> read(*shared.deps.io);
    shared.pool.run(caller.tenant, [fd, at, size, give = read.giver()] {
      give(batch::read_at(fd->get(), at, size));
    });
    auto bytes = co_await read.take();
    const bool is_read = bytes && *bytes && (*bytes)->size() == size;
    if (!is_read) co_return transfer.give_up();
    at += size;
    std::string piece = **std::move(bytes);
    co_await transfer.send_piece(std::move(piece));
  }
}

}  // namespace leasehold::http
