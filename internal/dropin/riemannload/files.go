package riemannload

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
)

// The first lines of the files, by kind of metric.
const (
	meterHeader = "# time,count,1 min rate,mean rate,5 min rate,15 min rate"
	timerHeader = "# time,min,max,mean,median,stddev,95%,99%,99.9%"
	gaugeHeader = "# time,value"
)

// riemannFiles are the CSV files of a run. Each gets a row per second, written before the
// next second begins.
type riemannFiles struct {
	dir  string
	open map[string]*os.File
	last int64 // second of the newest row
	err  error // the first error; nothing is written after it
}

func newRiemannFiles(dir string) *riemannFiles {
	return &riemannFiles{dir: dir, open: map[string]*os.File{}}
}

// second is the time in whole seconds.
func (m *riemannMetrics) second() int64 {
	return int64(math.Ceil((m.at - 50*time.Millisecond).Seconds()))
}

// row writes a row to each file. The remainder at the end of a run, however short,
// counts as another second.
func (f *riemannFiles) row(m *riemannMetrics) {
	at := max(m.second(), f.last+1)
	f.last = at
	for _, meter := range []*meter{&m.acks, &m.events, &m.sends, &m.bytes} {
		f.write(meter.name, meterHeader, fmt.Sprintf("%d,%d,%s,%s,%s,%s", at, meter.count,
			dropin.JavaDouble(meter.minutes(0)), dropin.JavaDouble(meter.mean()), dropin.JavaDouble(meter.minutes(1)), dropin.JavaDouble(meter.minutes(2))))
	}
	t := &m.rtt
	h := t.shown()
	cells := []string{strconv.FormatInt(at, 10)}
	for _, s := range []float64{
		h.Min().Seconds(), h.Max().Seconds(), h.Mean().Seconds(), t.percentile(50), deviation(h),
		t.percentile(95), t.percentile(99), t.percentile(99.9),
	} {
		cells = append(cells, dropin.JavaDouble(s))
	}
	f.write(t.name, timerHeader, strings.Join(cells, ","))
	f.write("unacked", gaugeHeader, fmt.Sprintf("%d,%d", at, m.unacked))
	f.write("buffered-sends", gaugeHeader, fmt.Sprintf("%d,0", at))
}

func (f *riemannFiles) write(name, header, row string) {
	if f.err != nil {
		return
	}
	file := f.open[name]
	if file == nil {
		if file, f.err = os.OpenFile(filepath.Join(f.dir, name+".csv"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644); f.err != nil {
			return
		}
		f.open[name] = file
		row = header + "\n" + row
	}
	_, f.err = file.WriteString(row + "\n")
}

func (f *riemannFiles) close() error {
	errs := []error{f.err}
	for _, file := range f.open {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// writeBuffered writes a file through a buffer.
func writeBuffered(path string, write func(*bufio.Writer) error) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	return errors.Join(write(w), w.Flush(), file.Close())
}
