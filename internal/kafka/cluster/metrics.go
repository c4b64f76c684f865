package cluster

import (
	"net"
	"strconv"
	"time"
)

// A BrokerMetrics counts what all clients together sent to one broker.
type BrokerMetrics struct {
	Broker     int32
	Addr       string
	Requests   uint64
	Batches    uint64
	Records    uint64
	Bytes      uint64        // of requests, as written
	RawBytes   uint64        // of records before compression
	SentBytes  uint64        // of records after compression
	Throttle   time.Duration // requested by the broker
	Throttled  uint64        // answers that requested it
	Reconnects uint64
}

// Ratio is the size of records after compression, divided by that before; 0: none were sent.
func Ratio(rows []BrokerMetrics) float64 {
	var raw, sent uint64
	for i := range rows {
		raw, sent = raw+rows[i].RawBytes, sent+rows[i].SentBytes
	}
	return float64(sent) / float64(max(raw, 1))
}

// JoinAddr joins the host and the port of a broker.
func JoinAddr(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// Led is the number of partitions that a broker leads, by the leaders of all.
func Led(leaders []int32, broker int32) int {
	n := 0
	for _, v := range leaders {
		if v == broker {
			n++
		}
	}
	return n
}
