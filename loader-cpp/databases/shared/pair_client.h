// The client of an engine that stores one value under a key and knows no fields: LevelDB and
// RocksDB, whose interfaces differ only in names.
//
// Api holds the database and its read and write options, and has: get(key, std::string*), put(key,
// value) and remove(key), which give the engine's status; iterator(), a unique_ptr to the engine's;
// take_stalls(), how often writers were held up since the last call; and static to_status(engine
// status) and slice(string_view). Thread safety: a client belongs to one thread.
#pragma once

#include <string_view>
#include <utility>

#include "loader/database.h"

namespace opjoule {

template <typename Api>
class PairClient : public Client {
 public:
  explicit PairClient(Api api) : api_(std::move(api)) {}

  Status read(std::string_view key, FieldChoice, Row& out) override {
    const auto got = api_.get(key, &out.buffer());
    return got.ok() ? out.parse() : Api::to_status(got);
  }

  Status insert(std::string_view key, const Row& row) override {
    return Api::to_status(api_.put(key, row.stored()));
  }

  Status update(std::string_view key, const Row& changed, bool blind) override {
    if (blind) return insert(key, changed);
    if (Status status = read(key, {}, merged_); !status.is_ok()) return status;
    merged_.merge(changed);
    return insert(key, merged_);
  }

  Status scan(std::string_view start, uint64_t limit, FieldChoice, const Visitor& visit) override {
    const auto view = [](const auto& slice) {
      return std::string_view(slice.data(), slice.size());
    };
    const auto at = api_.iterator();
    for (at->Seek(Api::slice(start)); at->Valid() && limit > 0; at->Next(), --limit) {
      if (Status status = scanned_.assign(view(at->value())); !status.is_ok()) return status;
      visit(view(at->key()), scanned_);
    }
    return Api::to_status(at->status());
  }

  // Reads first unless it is blind: these engines do not tell whether there was anything to remove.
  Status remove(std::string_view key, bool blind) override {
    if (blind) return Api::to_status(api_.remove(key));
    const auto got = api_.get(key, &merged_.buffer());
    return Api::to_status(got.ok() ? api_.remove(key) : got);
  }

  // Stalls concern the whole database: the client that is asked first reports them.
  [[nodiscard]] RetryCounts retries() const override {
    taken_.stall += api_.take_stalls();
    return taken_;
  }

 private:
  Api api_;
  Row merged_;
  Row scanned_;
  mutable RetryCounts taken_;
};

// Counts by walking through all rows, without filling the block cache.
template <typename Api>
Status count_pairs(Api api, uint64_t* rows) {
  api.read.fill_cache = false;
  const auto at = api.iterator();
  *rows = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) ++*rows;
  return Api::to_status(at->status());
}

}  // namespace opjoule
