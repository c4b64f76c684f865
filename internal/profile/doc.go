// Package profile reads recorded traffic and describes it by a few parameters.
//
// A reader takes a file of records, or of requests of APM agents. A Sampler takes the records, from a
// reader or from a topic that is read. Its Profile has the fitted parameters and their errors. The package
// opens no connection, and does not know how a workload is written.
//
// Others wrote what is read. So each reader bounds the memory that a line or a request may take, and
// an error says where the input is invalid. The memory of a sampler is bounded as well, whatever the
// input is: it counts sizes in buckets, keys in a table of at most MaxKeys entries, times in at most
// maxBins bins, and names of headers and logs up to a limit. It counts keys, and values of headers, by a
// hash with a secret of this process. So a profile contains none of them.
package profile

// A Record is one event of a sample. Its slices are only read during the call that takes it.
type Record struct {
	Log     int32 // partition; -1: not known
	Time    int64 // nanoseconds since 1970; 0: none
	Keyed   bool  // has a key, which may be empty
	Key     []byte
	Value   []byte // nil if only Size is known
	Size    int    // of the value, in bytes; used if Value is nil
	Null    bool   // the value is null, which a workload cannot send
	Headers []Header
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
