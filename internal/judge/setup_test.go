package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

// brokers are five alike machines, as carronade host --json describes them: a
// server with two processors, two memory modules and two disks in a RAID.
func brokers(t *testing.T) (out []any) {
	t.Helper()
	const machine = `{
		"name": "kafka-%d", "os": "linux", "arch": "amd64", "cores": 48, "memory_bytes": 68719476736, "go": "go1.26", "gomaxprocs": 48,
		"cpu": "Intel(R) Xeon(R) CPU E5-2678 v3 @ 2.50GHz", "cpu_version": "family 6, model 63, stepping 2", "sockets": 2, "physical_cores": 24,
		"caches": [{"level": 1, "type": "data", "bytes": 32768, "shared_by": 2}, {"level": 3, "type": "unified", "bytes": 31457280, "shared_by": 24}],
		"numa_nodes": 2, "numa": [{"id": 0, "cpus": "0-11,24-35"}, {"id": 1, "cpus": "12-23,36-47"}],
		"memory_modules": [{"bytes": 34359738368, "type": "DDR4", "mt_per_s": 2134, "rated_mt_per_s": 2400, "maker": "Samsung",
			"part_number": "M393A4K40CB1-CRC", "locator": "DIMM_A1", "bank": "NODE 1", "form": "DIMM", "rank": 2, "ecc": true}],
		"disks": [{"name": "sda", "model": "Samsung SSD 850 EVO 1TB", "firmware": "EMT02B6Q", "bytes": 1000204886016, "kind": "ssd", "sector_bytes": 512}],
		"raid": [{"name": "md0", "level": "raid1", "disks": ["sda1", "sdb1"]}],
		"file_systems": [{"mount": "/data", "type": "xfs", "device": "/dev/md0", "bytes": 966367641600, "free_bytes": %[1]d}]
	}`
	for i := range 5 {
		var h any
		assert.OK(t, json.Unmarshal(fmt.Appendf(nil, machine, i+1), &h))
		out = append(out, h)
	}
	return out
}

func setupOf(t *testing.T) *Setup {
	t.Helper()
	generator := map[string]any{"name": "lab", "os": "linux", "arch": "amd64", "cores": 8} // as it is in a report that was read
	topic := func(name string) map[string]any {
		return map[string]any{"topic": map[string]any{"name": name, "partitions": 15, "replicas": 3}}
	}
	a := &report.Document{ID: "a", Version: "v1", Target: "kafka://k/one", Host: generator, Hosts: brokers(t), Facts: topic("one"), Settings: []report.Setting{
		{Name: "target", Value: "kafka://k/one"},
		{Name: "count", Value: "10k"},
		{Name: "acks", Value: "1", Default: true},
		{Name: "system-host", Value: "x"},
		{Name: "fresh", Value: "false", Default: true},
		{Name: "linger", Value: "5ms", Default: true},
		{Name: "note", Value: "n", Minor: true},
	}}
	b := &report.Document{ID: "b", Version: "v1", Target: "kafka://k/two", Host: generator, Hosts: brokers(t), Facts: topic("two"), Settings: []report.Setting{
		{Name: "acks", Value: "1"}, {Name: "count", Value: "10M | x"}, {Name: "linger", Value: "5ms", Default: true},
	}}
	return SetupOf(a, b)
}

func TestSetup(t *testing.T) {
	s := setupOf(t)
	var b bytes.Buffer
	assert.OK(t, s.Text(&b, layout.Style{}))
	const want = `Machine of the generator
  name          lab
  system        linux, amd64
  cores         8 usable

Machines of the system
  names         kafka-1, kafka-2, kafka-3, kafka-4, kafka-5 (5 alike)
  system        linux, amd64
  processor     Intel(R) Xeon(R) CPU E5-2678 v3 @ 2.50GHz, family 6, model 63,
                stepping 2
  cores         48 usable; cores 24, sockets 2, NUMA nodes 2
  caches        L1d 32 KiB shared by 2, L3 30 MiB shared by 24
  NUMA node 0   processors 0-11,24-35
  NUMA node 1   processors 12-23,36-47
  memory        64 GiB
  module        DIMM_A1, NODE 1, 32 GiB, DDR4, DIMM, ECC, 2134 MT/s of 2400, 2
                ranks, Samsung, M393A4K40CB1-CRC
  disk sda      932 GiB, ssd, Samsung SSD 850 EVO 1TB, firmware EMT02B6Q,
                sectors of 512 bytes
  raid md0      raid1, of sda1 and sdb1
  files /data   xfs, /dev/md0, 900 GiB

Software
  generator     carronade v1
  target        kafka://k/one [a]
                kafka://k/two [b]
  topic name    one [a]
                two [b]
  topic partitions  15
  topic replicas  3

Settings
  count         10k [a]
                10M | x [b]
  acks          1
  linger        5ms (by default)

`
	assert.Same(t, b.String(), want)
}

func TestSetupMarkdown(t *testing.T) {
	s := setupOf(t)
	s.Machines = s.Machines[:1]
	var b bytes.Buffer
	assert.OK(t, s.Markdown(&b))
	const want = `### Machine of the generator

| machine |  |
| --- | --- |
| name | lab |
| system | linux, amd64 |
| cores | 8 usable |

### Software

| software |  | runs |
| --- | --- | --- |
| generator | carronade v1 | all |
| target | kafka://k/one | a |
| target | kafka://k/two | b |
| topic name | one | a |
| topic name | two | b |
| topic partitions | 15 | all |
| topic replicas | 3 | all |

### Settings

| settings |  | runs |
| --- | --- | --- |
| count | 10k | a |
| count | 10M \| x | b |
| acks | 1 | all |
| linger | 5ms (by default) | all |

`
	assert.Same(t, b.String(), want)
}

// TestSetupOfNothing has reports of older programs, without a description.
func TestSetupOfNothing(t *testing.T) {
	out, err := json.Marshal(SetupOf(&report.Document{ID: "a", Host: "a text", Hosts: []any{nil, map[string]any{}}}))
	assert.OK(t, err)
	const want = `{"machines":[],"software":[{"name":"generator","text":"carronade"},{"name":"target","text":""}],"settings":[]}`
	assert.Same(t, string(out), want)
}
