package report

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"carronade/measure"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// serviceSeries is ten intervals with a growing service time, and their sum.
func serviceSeries() (rows []measure.Interval, sum *measure.Histogram) {
	sum = measure.NewHistogram()
	for i := range 10 {
		iv := measure.Interval{Phase: "measurement", Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second}
		if i == 0 {
			iv.Phase = "warm-up"
		}
		iv.Service = spread(time.Duration(i+1)*700*time.Microsecond, 0.8, 500)
		iv.Response = measure.NewHistogram() // nothing was acked
		if i > 0 {
			sum.Merge(iv.Service)
		}
		rows = append(rows, iv)
	}
	return rows, sum
}

func TestLogReadByGo(t *testing.T) {
	var file bytes.Buffer
	log := NewLog(&file, "test.hlog")
	log.Begin(started.Add(123*time.Millisecond), "carronade run, times in us", "two\nlines")
	rows, sum := serviceSeries()
	for _, iv := range rows {
		log.Interval(&iv)
	}
	assert.OK(t, log.Close())
	got := map[string]*hdrhistogram.Histogram{}
	lines := 0
	r := hdrhistogram.NewHistogramLogReader(&file)
	for {
		h := assert.Value(r.NextIntervalHistogram())(t)
		if h == nil {
			break
		}
		want := started.Add(123*time.Millisecond + rows[lines/2].Start).UnixMilli()
		assert.True(t, h.StartTimeMs() == want, "line %d starts at %d, want %d", lines, h.StartTimeMs(), want)
		lines++
		if got[h.Tag()] == nil {
			got[h.Tag()] = hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 3)
		}
		dropped := got[h.Tag()].Merge(h)
		assert.True(t, dropped <= 0, "%d values out of range", dropped)
	}
	assert.Equal(t, lines, 2*len(rows), "lines")
	assert.True(t, got["service"].Equals(sum.ToHDR()), "the lines of a tag do not add up to the sum")
	assert.True(t, got["warm-up.service"].TotalCount() == 500 && got["response"].TotalCount() == 0,
		"got %d service times of the warm-up and %d response times", got["warm-up.service"].TotalCount(), got["response"].TotalCount())
}

// Java's HdrHistogram tool reads the log and finds the same percentiles.
func TestLogReadByJava(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.hlog")
	log := assert.Value(CreateLog(path))(t)
	log.Begin(started, "carronade")
	rows, sum := serviceSeries()
	for _, iv := range rows {
		log.Interval(&iv)
	}
	assert.OK(t, log.Close())
	out := kafkatest.Tool(t, "org.HdrHistogram.HistogramLogProcessor", "-i", path, "-tag", "service", "-outputValueUnitRatio", "1")
	// The output has two tables: one of the intervals, and one of percentiles,
	// with lines of value, percentile, count, 1/(1-percentile).
	checked := 0
	total := false
	for line := range strings.Lines(out) {
		f := strings.Fields(strings.NewReplacer("[", " ", "]", " ", ",", " ", "=", " ").Replace(line))
		if len(f) >= 4 && f[0] == "#" && f[1] == "Max" {
			for i := range f {
				if f[i] == "count" {
					n, _ := strconv.ParseUint(f[i+1], 10, 64)
					total = n == sum.Count()
				}
			}
		}
		if len(f) < 3 || len(f) > 4 {
			continue
		}
		us, err1 := strconv.ParseFloat(f[0], 64)
		p, err2 := strconv.ParseFloat(f[1], 64)
		if err1 != nil || err2 != nil || p <= 0 || p > 1 {
			continue
		}
		// The tool prints the percentile in 12 digits, so its rank is that one or the next.
		near := false
		for _, off := range []float64{-1e-9, 0, 1e-9} {
			got := float64(sum.Percentile((p+off)*100)) / 1e3
			near = near || math.Abs(got-us) < us/1000+1
		}
		if !near {
			t.Errorf("p%v: Java reads %v us, the histogram %v", p*100, us, sum.Percentile(p*100))
		}
		checked++
	}
	assert.True(t, checked >= 10 && total, "%d percentiles compared, total found: %v, in:\n%s", checked, total, out)
}

// A disk that fills up during the run is reported once, at the end.
func TestLogOnAFullDisk(t *testing.T) {
	rows, _ := serviceSeries()
	full := errors.New("no space left on device")
	w := &filling{room: 4000, err: full}
	log := NewLog(w, "run.hlog")
	for range 3 {
		for _, iv := range rows {
			log.Interval(&iv)
		}
	}
	err := log.Close()
	assert.True(t, errors.Is(err, full) && strings.Contains(err.Error(), "write the HDR log run.hlog: "),
		"got %v, want the disk's error with the log's name", err)
	assert.Equal(t, w.refused, 1, "tried %d times after the error", w.refused-1)
	again := log.Close()
	assert.True(t, errors.Is(again, full), "second Close: got %v", again)
}

// An error of a file has its name only once.
func TestLogOnAFullFile(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		return // other systems have no such file; TestLogOnAFullDisk covers them
	}
	log := assert.Value(CreateLog("/dev/full"))(t)
	log.Begin(started)
	assert.Equal(t, fmt.Sprint(log.Close()), "write the HDR log /dev/full: no space left on device")
}

// filling is a writer with room for a number of bytes.
type filling struct {
	room, refused int
	err           error
}

func (f *filling) Write(p []byte) (int, error) {
	if len(p) > f.room {
		f.refused++
		n := f.room
		f.room = 0
		return n, f.err
	}
	f.room -= len(p)
	return len(p), nil
}

func TestCreateLogSaysWhere(t *testing.T) {
	_, err := CreateLog(filepath.Join(t.TempDir(), "no", "such", "directory"))
	assert.True(t, errors.Is(err, os.ErrNotExist) && strings.HasPrefix(err.Error(), "create the HDR log: "), "got %v", err)
}

func TestLogBeginsItself(t *testing.T) {
	var file bytes.Buffer
	log := NewLog(&file, "x")
	log.Interval(&measure.Interval{Phase: "measurement", End: time.Second, Set: measure.Set{SendDelay: same(time.Millisecond, 3)}})
	lines := strings.Split(strings.TrimSpace(file.String()), "\n")
	assert.True(t, cmp.Diff(5, len(lines)) == "" && strings.HasPrefix(lines[4], "Tag=send_delay,0.000,1.000,1.000,HISTF"),
		"got %q", file.String())
}

func BenchmarkLogInterval(b *testing.B) {
	rows, _ := serviceSeries()
	log := NewLog(&bytes.Buffer{}, "x")
	for b.Loop() {
		log.Interval(&rows[5])
	}
}
