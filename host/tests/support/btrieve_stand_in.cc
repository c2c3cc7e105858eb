// In place of Actian Zen's C library in the tests: the functions of Btrieve 2 that study S5 calls, over tables in memory.
//
// Written from what the Btrieve documentation says of positions: retrieving by an index sets the logical position,
// without one the physical; a deletion destroys the current record and the physical position, and leaves the logical
// next where it is; an update that changes the key of the index in use moves the logical position; within a
// transaction, a record that was retrieved before it cannot be changed. Says nothing about Zen's own speed or energy.
//
// Environment: STAND_IN_VERSION (13.10), STAND_IN_FAULT, as FUNCTION=STATUS or FUNCTION=STATUS after N calls: F=S@N.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kNoError = 0, kKeyNotFound = 4, kDuplicate = 5, kBadIndex = 6, kNoPosition = 8, kEndOfFile = 9,
              kFileNotFound = 12, kLengthError = 22, kTransactionActive = 37, kNoTransaction = 39,
              kReadOutside = 83;
constexpr int kNoIndex = -1, kEqual = 1, kInteger = 2;

struct Segment {
  int offset = 0, length = 0, type = 0;
};

struct Index {
  Segment segment;
  bool duplicates = false;
};

using Key = std::pair<std::string, int64_t>;  // sortable bytes of the field, then the record's address

struct Table {
  int length = 0;
  int64_t next = 1;
  std::map<int64_t, std::string> records;
  std::vector<Index> indexes;
  std::vector<std::set<Key>> keys;
};

struct Client {
  bool in_transaction = false;
  int number = 0;
  std::map<std::string, Table> before;
};

struct File {
  Client* client = nullptr;
  std::string name;
  int status = kNoError, index = kNoIndex;
  std::optional<int64_t> current;    // a record that can be changed
  std::optional<int64_t> physical;   // where stepping goes on from
  std::optional<Key> logical;        // where the index in use goes on from
  int read_in = 0;                   // transaction that the current record was retrieved in
};

std::map<std::string, Table> tables;
int transactions = 0;

std::string sortable(const Index& index, const char* field) {
  std::string bytes(field, index.segment.length);
  if (index.segment.type != kInteger) return bytes;
  std::string turned(bytes.rbegin(), bytes.rend());  // little endian
  turned[0] = static_cast<char>(turned[0] ^ 0x80);
  return turned;
}

Key key_of(const Table& table, size_t index, int64_t address, const std::string& record) {
  const Index& own = table.indexes[index];
  return {sortable(own, record.data() + own.segment.offset), address};
}

int forced(const char* function) {
  static std::map<std::string, int> calls;
  const char* asked = std::getenv("STAND_IN_FAULT");
  if (asked == nullptr) return calls.clear(), kNoError;
  std::string name(asked, std::strcspn(asked, "="));
  if (name != function) return kNoError;
  int status = std::atoi(asked + name.size() + 1);
  const char* at = std::strchr(asked, '@');
  return ++calls[function] > (at ? std::atoi(at + 1) : 0) ? status : kNoError;
}

int fail(File* file, int status) {
  file->status = status;
  return status;
}

int retrieved(File* file, const Table& table, int64_t address, char* record, int size) {
  const std::string& found = table.records.at(address);
  if (size < static_cast<int>(found.size())) return fail(file, kLengthError), -1;
  std::memcpy(record, found.data(), found.size());
  file->status = kNoError;
  file->current = file->physical = address;
  file->read_in = file->client->in_transaction ? file->client->number : 0;
  return static_cast<int>(found.size());
}

int at_key(File* file, const Table& table, std::set<Key>::const_iterator found, char* record, int size) {
  if (found == table.keys[file->index].end()) return fail(file, kEndOfFile), -1;
  file->logical = *found;
  return retrieved(file, table, found->second, record, size);
}

int at_record(File* file, const Table& table, std::map<int64_t, std::string>::const_iterator found, char* record,
              int size) {
  if (found == table.records.end()) return fail(file, kEndOfFile), -1;
  return retrieved(file, table, found->first, record, size);
}

bool is_duplicate(const Table& table, size_t index, const Key& key) {
  auto found = table.keys[index].lower_bound({key.first, 0});
  return !table.indexes[index].duplicates && found != table.keys[index].end() && found->first == key.first &&
         found->second != key.second;
}

int changeable(File* file) {
  if (!file->current) return kNoPosition;
  const Client& client = *file->client;
  return client.in_transaction && file->read_in != client.number ? kReadOutside : kNoError;
}

}  // namespace

#define FORCED(function)                                 \
  if (int status = forced(function); status != kNoError) \
  return status

extern "C" {

const char* BtrieveStatusCodeToString(int status) {
  static const std::map<int, const char*> words = {{kKeyNotFound, "Key value not found"},
                                                   {kNoPosition, "Position not set"},
                                                   {kEndOfFile, "End of file"},
                                                   {kFileNotFound, "File not found"},
                                                   {18, "Disk full"},
                                                   {20, "Record manager inactive"}};
  auto found = words.find(status);
  return found == words.end() ? "Another status" : found->second;
}

int BtrieveClientAllocate(Client** client, int, int) {
  *client = new Client;
  return kNoError;
}
int BtrieveClientFree(Client* client) {
  delete client;
  return kNoError;
}
int BtrieveClientReset(Client*) { return kNoError; }
int BtrieveClientGetVersion(Client*, char*, File*) {
  FORCED("BtrieveClientGetVersion");
  return kNoError;
}

int BtrieveVersionAllocate(char** version) {
  const char* asked = std::getenv("STAND_IN_VERSION");
  *version = strdup(asked ? asked : "13.10");
  return kNoError;
}
int BtrieveVersionFree(char* version) {
  std::free(version);
  return kNoError;
}
int BtrieveVersionGetLocalVersionNumber(const char* version) { return std::atoi(version); }
int BtrieveVersionGetLocalRevisionNumber(const char* version) { return std::atoi(std::strchr(version, '.') + 1); }

int BtrieveKeySegmentAllocate(Segment** segment) {
  *segment = new Segment;
  return kNoError;
}
int BtrieveKeySegmentFree(Segment* segment) {
  delete segment;
  return kNoError;
}
int BtrieveKeySegmentSetField(Segment* segment, int offset, int length, int type) {
  *segment = {offset, length, type};
  return kNoError;
}
int BtrieveIndexAttributesAllocate(Index** index) {
  *index = new Index;
  return kNoError;
}
int BtrieveIndexAttributesFree(Index* index) {
  delete index;
  return kNoError;
}
int BtrieveIndexAttributesAddKeySegment(Index* index, const Segment* segment) {
  index->segment = *segment;
  return kNoError;
}
int BtrieveIndexAttributesSetDuplicateMode(Index* index, int mode) {
  index->duplicates = mode != 0;
  return kNoError;
}
int BtrieveIndexAttributesSetModifiable(Index*, int) { return kNoError; }

int BtrieveFileAttributesAllocate(int** length) {
  *length = new int(0);
  return kNoError;
}
int BtrieveFileAttributesFree(int* length) {
  delete length;
  return kNoError;
}
int BtrieveFileAttributesSetFixedRecordLength(int* length, int bytes) {
  *length = bytes;
  return kNoError;
}

int BtrieveClientFileCreate(Client*, const int* length, const Index* index, const char* name, int, int) {
  FORCED("BtrieveClientFileCreate");
  if (std::FILE* made = std::fopen(name, "w"); made != nullptr) std::fclose(made);
  Table table;
  table.length = *length;
  table.indexes.push_back(*index);
  table.keys.emplace_back();
  tables[name] = table;
  return kNoError;
}
int BtrieveClientFileOpen(Client* client, File** file, const char* name, const char*, int, int) {
  FORCED("BtrieveClientFileOpen");
  if (tables.count(name) == 0) return kFileNotFound;
  *file = new File;
  (*file)->client = client;
  (*file)->name = name;
  return kNoError;
}
int BtrieveClientFileClose(Client*, File* file) {
  delete file;
  return kNoError;
}
int BtrieveFileIndexCreate(File* file, const Index* index) {
  Table& table = tables[file->name];
  table.indexes.push_back(*index);
  table.keys.emplace_back();
  for (const auto& [address, record] : table.records)
    table.keys.back().insert(key_of(table, table.indexes.size() - 1, address, record));
  return fail(file, kNoError);
}

int BtrieveClientTransactionBegin(Client* client, int, int) {
  if (client->in_transaction) return kTransactionActive;
  client->in_transaction = true;
  client->number = ++transactions;
  client->before = tables;
  return kNoError;
}
int BtrieveClientTransactionEnd(Client* client) {
  FORCED("BtrieveClientTransactionEnd");
  if (!client->in_transaction) return kNoTransaction;
  client->in_transaction = false;
  client->before.clear();
  return kNoError;
}
int BtrieveClientTransactionAbort(Client* client) {
  if (!client->in_transaction) return kNoTransaction;
  client->in_transaction = false;
  tables = std::move(client->before);
  return kNoError;
}

int BtrieveFileGetLastStatusCode(const File* file) { return file->status; }

int BtrieveFileRecordCreate(File* file, char* record, int length) {
  FORCED("BtrieveFileRecordCreate");
  Table& table = tables[file->name];
  if (length != table.length) return fail(file, kLengthError);
  std::string made(record, length);
  int64_t address = table.next;
  for (size_t index = 0; index < table.indexes.size(); ++index)
    if (is_duplicate(table, index, key_of(table, index, address, made))) return fail(file, kDuplicate);
  for (size_t index = 0; index < table.indexes.size(); ++index)
    table.keys[index].insert(key_of(table, index, address, made));
  table.records[table.next++] = made;
  file->current = file->physical = address;
  return fail(file, kNoError);
}

int BtrieveFileRecordUpdate(File* file, const char* record, int length) {
  FORCED("BtrieveFileRecordUpdate");
  if (int status = changeable(file); status != kNoError) return fail(file, status);
  Table& table = tables[file->name];
  if (length != table.length) return fail(file, kLengthError);
  int64_t address = *file->current;
  std::string changed(record, length), old = table.records[address];
  for (size_t index = 0; index < table.indexes.size(); ++index)
    if (is_duplicate(table, index, key_of(table, index, address, changed))) return fail(file, kDuplicate);
  for (size_t index = 0; index < table.indexes.size(); ++index) {
    table.keys[index].erase(key_of(table, index, address, old));
    table.keys[index].insert(key_of(table, index, address, changed));
  }
  table.records[address] = changed;
  if (file->index >= 0) file->logical = key_of(table, file->index, address, changed);
  return fail(file, kNoError);
}

int BtrieveFileRecordDelete(File* file) {
  FORCED("BtrieveFileRecordDelete");
  if (int status = changeable(file); status != kNoError) return fail(file, status);
  Table& table = tables[file->name];
  int64_t address = *file->current;
  for (size_t index = 0; index < table.indexes.size(); ++index)
    table.keys[index].erase(key_of(table, index, address, table.records[address]));
  table.records.erase(address);
  file->current.reset();
  file->physical.reset();
  return fail(file, kNoError);
}

int BtrieveFileRecordRetrieve(File* file, int comparison, int index, const char* key, int length, char* record,
                              int size, int) {
  Table& table = tables[file->name];
  if (index < 0 || index >= static_cast<int>(table.indexes.size()) || comparison != kEqual)
    return fail(file, kBadIndex), -1;
  if (length != table.indexes[index].segment.length) return fail(file, kLengthError), -1;
  std::string wanted = sortable(table.indexes[index], key);
  auto found = table.keys[index].lower_bound({wanted, 0});
  if (found == table.keys[index].end() || found->first != wanted) return fail(file, kKeyNotFound), -1;
  file->index = index;
  return at_key(file, table, found, record, size);
}

int BtrieveFileRecordRetrieveFirst(File* file, int index, char* record, int size, int) {
  Table& table = tables[file->name];
  file->index = index;
  if (index == kNoIndex) return at_record(file, table, table.records.begin(), record, size);
  return at_key(file, table, table.keys[index].begin(), record, size);
}

int BtrieveFileRecordRetrieveNext(File* file, char* record, int size, int) {
  if (int status = forced("BtrieveFileRecordRetrieveNext"); status != kNoError) return fail(file, status), -1;
  Table& table = tables[file->name];
  if (file->index == kNoIndex) {
    if (!file->physical) return fail(file, kNoPosition), -1;
    return at_record(file, table, table.records.upper_bound(*file->physical), record, size);
  }
  if (!file->logical) return fail(file, kNoPosition), -1;
  return at_key(file, table, table.keys[file->index].upper_bound(*file->logical), record, size);
}

}  // extern "C"
