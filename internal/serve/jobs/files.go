package jobs

import (
	"time"

	"carronade/internal/host"
	"carronade/units"
)

// Between two looks at the folder of files. A folder with very many files takes long to look at: that may take a
// fiftieth of the time, because jobs measure.
const (
	lookEvery = time.Second
	lookShare = 50
)

// watchFiles returns a channel with a text when a job makes the folder files larger than it may be. It is called
// before the job starts: what is in the folder then does not count against jobs that write nothing. stop ends the watch.
func (q *Queue) watchFiles() (full <-chan string, stop func()) {
	most := q.o.MostFiles
	if most <= 0 {
		return nil, func() {}
	}
	found, done := make(chan string, 1), make(chan struct{})
	dir := q.folder.path("files")
	before := host.FolderSize(dir)
	go func() {
		for pause := lookEvery; ; {
			select {
			case <-time.After(pause):
			case <-done:
				return
			}
			began := time.Now()
			if n := host.FolderSize(dir); n > most && n > before {
				found <- "the folder files has " + units.FormatSize(n) + ", more than the " + units.FormatSize(most) + " that this server allows (--job-disk): remove files from it"
				return
			}
			pause = max(lookEvery, lookShare*time.Since(began))
		}
	}()
	return found, func() { close(done) }
}
