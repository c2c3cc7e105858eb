// The property table: what `loader properties` prints and every run checks its keys against.
#include <functional>
#include <set>

#include "workload/settings.h"

namespace opjoule {

const std::vector<PropertyRule>& workload_rules() {
  static const std::vector<PropertyRule> rules{
      {"workload", "site.ycsb.workloads.CoreWorkload", "YCSB's CoreWorkload, the one there is"},
      {"recordcount", "0", "records in the database once loaded"},
      {"operationcount", "0", "operations of a run; 0: until maxexecutiontime"},
      {"insertstart", "0", "first key number this loader inserts and asks for"},
      {"insertcount", "recordcount - insertstart", "key numbers from insertstart on"},
      {"maxexecutiontime", "0", "a phase ends after so many seconds; 0: no limit"},
      {"threadcount", "1", "threads; --threads wins"},
      {"target", "0", "operations a second, all threads together; 0: as fast as it goes"},
      {"arrivals", "even", "with a target: even (as YCSB), or exponential gaps (not in YCSB)"},
      {"spin.sleep", "false", "wait for the target's next tick by spinning"},
      {"measurement.interval", "both", "with a target: op, intended or both latencies"},
      {"seed", "1", "of every random draw; --seed wins"},
      {"table", "usertable", "table name in traces; engines have one table, of a fixed name"},
      {"fieldcount", "10", "fields of a record"},
      {"fieldlength", "100", "bytes of a value, or the most with another distribution"},
      {"minfieldlength", "1", "the fewest bytes of a value (uniform, zipfian)"},
      {"fieldlengthdistribution", "constant", "constant, uniform, zipfian or histogram"},
      {"fieldlengthhistogram", "hist.txt", "file: BlockSize<TAB>bytes, then bucket<TAB>count"},
      {"fieldnameprefix", "field", "field names are this and a number"},
      {"insertorder", "hashed", "key names from the hashed key number, or ordered"},
      {"zeropadding", "1", "digits of a key's number at least"},
      {"readproportion", "0.95", "share of reads"},
      {"updateproportion", "0.05", "share of updates"},
      {"insertproportion", "0", "share of inserts of new records"},
      {"scanproportion", "0", "share of scans"},
      {"readmodifywriteproportion", "0", "share of a read and an update of one record"},
      {"removeproportion", "0", "share of removals (not in YCSB's CoreWorkload)"},
      {"insertroom.operations", "operationcount, or recordcount",
       "zipfian: key space for the inserts of so many operations (not in YCSB)"},
      {"mixblock.length_s", "0", "the mix changes every so many seconds; 0: never (not in YCSB)"},
      {"requestdistribution", "uniform",
       "uniform, zipfian, truezipfian (exact), latest, hotspot, exponential, sequential"},
      {"truezipfian.theta", "0.99", "exponent of truezipfian"},
      {"hotspotdatafraction", "0.2", "hotspot: share of the records that is hot"},
      {"hotspotopnfraction", "0.8", "hotspot: share of the requests that go there"},
      {"exponential.percentile", "95", "exponential: percent of the requests..."},
      {"exponential.frac", "0.8571428571", "...that go to this newest share of the records"},
      {"minscanlength", "1", "the fewest records of a scan"},
      {"maxscanlength", "1000", "the most records of a scan"},
      {"scanlengthdistribution", "uniform", "uniform or zipfian"},
      {"readallfields", "true", "read all fields, or a random one"},
      {"writeallfields", "false", "update all fields, or a random one"},
      {"updates", "read-merge-write", "blind: all fields are put without a read (not in YCSB)"},
      {"removes", "checked", "checked: missing keys are told; blind: no reading (not in YCSB)"},
      {"putback", "false", "a removed record is inserted again, untimed (not in YCSB)"},
      {"valuedigest", "false", "the summary has a digest of what reads found (not in YCSB)"},
      {"dataintegrity", "false", "values derive from the key, and reads verify them"},
      {"valuecharacters", "printable", "printable (as YCSB) or any (all byte values)"},
      {"valuecompressratio", "1", "share of a value that is random, the rest repeated text"},
      {"valuetext", "", "values are pieces of this file, or of prose: generated (not in YCSB)"},
      {"core_workload_insertion_retry_limit", "0", "load: tries after a failed insert"},
      {"core_workload_insertion_retry_interval", "3", "load: seconds between them, +-20 %"},
      {"core_workload_insertion_keep_going_on_error", "false", "load: go on after a failed insert"},
      {"settle", "auto", "none: do not wait for the engine and the file system after the phase"},
      {"settle.limit_s", "60", "longest wait for them [s]"},
  };
  return rules;
}

const std::vector<PropertyRule>& inert_rules() {
  static const std::vector<PropertyRule> rules{
      {"db", "", "--db chooses the engine"},
      {"dotransactions", "", "the command chooses the phase"},
      {"readallfieldsbyname", "false", "engines here read by number either way"},
      {"columnfamily", "", "of other databases"},
      {"exporter", "", "results are JSON lines on stdout"},
      {"exportfile", "", "results are JSON lines on stdout"},
      {"measurementtype", "", "latencies are kept in constant memory, operations in --op-log"},
      {"measurement.trackjvm", "", "there is no JVM"},
      {"measurement.raw.output_file", "", "--op-log has every operation"},
      {"measurement.histogram.verbose", "", "--op-log has every operation"},
      {"histogram.buckets", "", "buckets are logarithmic"},
      {"hdrhistogram.percentiles", "", "the summary has 50, 95 and 99"},
      {"hdrhistogram.output.path", "", "--op-log has every operation"},
      {"hdrhistogram.fileoutput", "", "--op-log has every operation"},
      {"timeseries.granularity", "", "--op-log has every operation"},
      {"status", "", "--progress shows it"},
      {"status.interval", "", "--progress shows it twice a second"},
      {"label", "", "the run record has a name"},
      {"reportlatencyforeacherror", "", "errors are counted by code"},
      {"latencytrackederrors", "", "errors are counted by code"},
      {"maxscanrate", "", "of one other database"},
      {"scanoptimelimit", "", "of one other database"},
      {"discardscannedrecord", "", "scanned records are never kept"},
      {"basicdb.verbose", "", "of YCSB's basic binding"},
      {"basicdb.simulatedelay", "", "of YCSB's basic binding"},
      {"basicdb.randomizedelay", "", "of YCSB's basic binding"},
      {"dotransaction", "", "of YCSB-cpp: the command chooses the phase"},
      {"doload", "", "of YCSB-cpp: the command chooses the phase"},
      {"dbname", "", "of YCSB-cpp: --db chooses the engine"},
      {"dropdata", "", "of go-ycsb: a load always begins with an empty database"},
      {"silence", "", "of go-ycsb: errors are counted by code"},
  };
  return rules;
}

const std::vector<PropertyRule>& place_rules() {
  static const std::vector<PropertyRule> rules{
      {"leveldb.dbname", "", "--path names the folder"},
      {"leveldb.dir", "", "--path names the folder"},
      {"lmdb.dbpath", "", "--path names the folder"},
      {"mongodb.url", "", "--path names the server"},
      {"rocksdb.dbname", "", "--path names the folder"},
      {"rocksdb.dir", "", "--path names the folder"},
      {"sqlite.dbpath", "", "--path names the folder"},
  };
  return rules;
}

const std::vector<PropertyRule>& translated_rules() {
  static const std::vector<PropertyRule> rules{
      {"batch.size", "", "operations are done one by one; for SQLite set sqlite.batch"},
      {"batchsize", "", "operations are done one by one; for SQLite set sqlite.batch"},
      {"db.batchsize", "", "operations are done one by one; for SQLite set sqlite.batch"},
      {"clients", "", "here it is threadcount"},
      {"distribution", "", "here it is requestdistribution"},
      {"duration", "", "here it is maxexecutiontime, in seconds"},
      {"keycount", "", "here it is recordcount"},
      {"keyprefix", "", "keys begin with user, as YCSB's; leave it out"},
      {"keysize", "", "keys are user and a number, as YCSB's; zeropadding sets its digits"},
      {"limit.ops", "", "here it is target"},
      {"num_operations", "", "here it is operationcount"},
      {"num_records", "", "here it is recordcount"},
      {"opcount", "", "here it is operationcount"},
      {"operations", "", "here it is operationcount"},
      {"records", "", "here it is recordcount"},
      {"rmwproportion", "", "here it is readmodifywriteproportion"},
      {"runtime", "", "here it is maxexecutiontime, in seconds"},
      {"threads", "", "here it is threadcount"},
      {"valuelength", "", "set fieldcount=1 and fieldlength to the bytes of a value"},
      {"valuesize", "", "set fieldcount=1 and fieldlength to the bytes of a value"},
      {"warmupoperations", "",
       "measure.py --warm-up SECONDS warms up, in no figure; leave this out"},
      {"warmuptime", "", "measure.py --warm-up SECONDS warms up, in no figure; leave this out"},
      {"writeproportion", "", "here it is updateproportion, or insertproportion for new records"},
  };
  return rules;
}

bool is_foreign(std::string_view key) {
  static const std::set<std::string_view, std::less<>> families{
      "accumulo", "aerospike", "arangodb", "as", "asynchbase", "azure", "azuretable", "badger",
      "bigtable", "boltdb", "cassandra", "cloudspanner", "cockroach", "cosmosdb", "couchbase",
      "couchbase2", "crail", "db", "dynamodb", "es", "elasticsearch", "etcd", "fdb", "foundationdb",
      "geode", "google", "googlebigtable", "googledatastore", "griddb", "hbase", "hosts",
      "hypertable", "ignite", "infinispan", "jdbc", "kudu", "mapr", "maprdb", "memcached", "minio",
      "mysql", "nosqldb", "orientdb", "pg", "postgrenosql", "postgres", "rados", "redis", "rest",
      "riak", "s3", "scylla", "seaweed", "solr", "spanner", "sqldb", "tablestore", "tarantool",
      "tidb", "tikv", "voltdb", "wiredtiger", "zookeeper",
      // Those that are built into some loaders.
      "berkeleydb", "leveldb", "lmdb", "mongodb", "rocksdb", "sqlite"};
  const size_t dot = key.find('.');
  return key == "hosts" || (dot != std::string_view::npos && families.contains(key.substr(0, dot)));
}

}  // namespace opjoule
