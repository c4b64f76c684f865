// Package traffic reads recorded traffic and describes it by a few parameters. Readers take files of
// records and of protocols' bytes, captures of packets, whose TCP connections they put together, and
// what targets read. They turn them into samples of records, and into counts of what a protocol's
// requests are made of. A Sampler takes the samples, and its Profile has the fitted parameters with
// their errors. The package opens no connection, and does not know how a workload is written.
//
// What is read was written by others, so each reader bounds the memory that a line, a frame or a
// body may take, and says where the input is invalid. The memory of a sampler is bounded as well,
// whatever it is given: sizes are counted in buckets, keys in a table of at most MaxKeys entries,
// times in at most maxBins bins, and header names and logs up to a limit. Keys and values of headers
// are only counted by a hash with a secret of the process, so a profile contains none of them.
package traffic

// A Record is one event of a sample. Its slices are only read during the call that takes it.
type Record struct {
	Log     int32  // partition; -1: not known
	Time    int64  // nanoseconds since 1970; 0: none
	Keyed   bool   // has a key, which may be empty
	Key     []byte // nil if only KeyHash is known
	Value   []byte // nil if only Size is known
	Size    int    // of the value, in bytes; used if Value is nil
	Null    bool   // the value is null, which a workload cannot send
	Headers []Header
	// Stands is how many events came at Time, of which this is one in a sample; 0: 1.
	Stands uint64
}

// A Header is a header of a record.
type Header struct{ Name, Value []byte }

// A Batch is what was sent in one piece. Its records are given separately.
type Batch struct {
	Codec   string // "none" if it is not compressed, "" if that is not known
	Events  int
	Plain   int64 // bytes of its records before compression
	Wire    int64 // bytes of its records as they were sent or stored
	OneTime bool  // all its records have the same time
}
