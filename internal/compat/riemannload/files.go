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
)

// The first lines of the files, by kind of metric.
const (
	meterHeader = "# time,count,1 min rate,mean rate,5 min rate,15 min rate"
	timerHeader = "# time,min,max,mean,median,stddev,95%,99%,99.9%"
	gaugeHeader = "# time,value"
)

// files are the CSV files of a run. Each gets a row per second, written before the
// next second begins.
type files struct {
	dir  string
	open map[string]*os.File
	last int64 // second of the newest row
	err  error // the first error; nothing is written after it
}

func newFiles(dir string) *files { return &files{dir: dir, open: map[string]*os.File{}} }

// second is the time in whole seconds.
func (m *metrics) second() int64 { return int64(math.Ceil((m.at - 50*time.Millisecond).Seconds())) }

// row writes a row to each file. The remainder at the end of a run, however short,
// counts as another second.
func (f *files) row(m *metrics) {
	at := max(m.second(), f.last+1)
	f.last = at
	for _, meter := range []*meter{&m.acks, &m.events, &m.sends, &m.bytes} {
		f.write(meter.name, meterHeader, fmt.Sprintf("%d,%d,%s,%s,%s,%s", at, meter.count,
			double(meter.minutes(0)), double(meter.mean()), double(meter.minutes(1)), double(meter.minutes(2))))
	}
	t := &m.rtt
	h := t.shown()
	cells := []string{strconv.FormatInt(at, 10)}
	for _, s := range []float64{
		h.Min().Seconds(), h.Max().Seconds(), h.Mean().Seconds(), t.percentile(50), deviation(h),
		t.percentile(95), t.percentile(99), t.percentile(99.9),
	} {
		cells = append(cells, double(s))
	}
	f.write(t.name, timerHeader, strings.Join(cells, ","))
	f.write("unacked", gaugeHeader, fmt.Sprintf("%d,%d", at, m.unacked))
	f.write("buffered-sends", gaugeHeader, fmt.Sprintf("%d,0", at))
}

func (f *files) write(name, header, row string) {
	if f.err != nil {
		return
	}
	file := f.open[name]
	if file == nil {
		if file, f.err = os.Create(filepath.Join(f.dir, name+".csv")); f.err != nil {
			return
		}
		f.open[name] = file
		row = header + "\n" + row
	}
	_, f.err = file.WriteString(row + "\n")
}

func (f *files) close() error {
	errs := []error{f.err}
	for _, file := range f.open {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// double formats a number as Java does.
func double(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return strings.Replace(strconv.FormatFloat(v, 'f', -1, 64), "Inf", "Infinity", 1)
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		return withFraction(strconv.FormatFloat(v, 'f', -1, 64))
	}
	digits, power, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(power)
	return withFraction(digits) + "E" + strconv.Itoa(n)
}

// withFraction appends .0 to a number without a decimal point.
func withFraction(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	return s + ".0"
}

// writeFile writes a file through a buffer.
func writeFile(path string, write func(*bufio.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	return errors.Join(write(w), w.Flush(), file.Close())
}
