// The session on an engine that stores one value under a key and knows no fields: what LevelDB's
// and RocksDB's have in common, whose interfaces differ by names alone.
//
// Api has, for one database and the options of its accesses: get(key, std::string*), put(key,
// value), remove(key), which give the engine's status; iterator(), a unique_ptr to the engine's;
// take_stalls(), the writers held up since it was last asked; and static to_status(engine status)
// and slice(string_view). Thread safety: a session belongs to one thread.
#pragma once

#include <string_view>
#include <utility>

#include "loader/database.h"

namespace opjoule {

template <typename Api>
class PairSession : public Session {
 public:
  explicit PairSession(Api api) : api_(std::move(api)) {}

  Status read(std::string_view key, FieldChoice, Record& out) override {
    const auto got = api_.get(key, &out.buffer());
    return got.ok() ? out.parse() : Api::to_status(got);
  }

  Status insert(std::string_view key, const Record& record) override {
    return Api::to_status(api_.put(key, record.stored()));
  }

  Status update(std::string_view key, const Record& changed, bool blind) override {
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

  // These engines cannot tell whether there was anything to remove.
  Status remove(std::string_view key) override {
    const auto got = api_.get(key, &merged_.buffer());
    return Api::to_status(got.ok() ? api_.remove(key) : got);
  }

  // Writers are held up for the whole database: whichever session is asked first reports them.
  [[nodiscard]] RetryCounts retries() const override {
    taken_.stall += api_.take_stalls();
    return taken_;
  }

 private:
  Api api_;
  Record merged_;
  Record scanned_;
  mutable RetryCounts taken_;
};

// Counts by a walk that leaves the block cache alone.
template <typename Api>
Status count_pairs(Api api, uint64_t* records) {
  api.read.fill_cache = false;
  const auto at = api.iterator();
  *records = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) ++*records;
  return Api::to_status(at->status());
}

}  // namespace opjoule
