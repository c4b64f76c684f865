package payload

import "strings"

// wordList has 256 words, so that a byte selects one.
const wordList = `able about above across act add again against age ago air almost alone along already also always and anchor animal
another answer any area arm around as ask autumn away back ball bank battle bear beat because bed before began behind
bell below beside best better big bird black blue board body book both bottom box boy bread break bridge bright bring
broad brought build burn but buy call came can captain care carry cat catch cause centre certain chair chart chief child
choose circle class clean clear climb clock close coast cold colour come common cook copper corn corner could count
course cover crew cross crowd cry cut dark day dead deal decide deep depend did differ direct do door double down draw
dream drive drop dry during each ear earth ease east eat edge egg either electric end enemy engine equal evening event
ever every example face fact fair fall family far fast father feather feed feel field fight figure fill final find
finger fire first fish fit five flat fleet floor flow flower follow food foot for force forest forward found four free
fresh friend front fruit full game garden gave general gentle get give glass gold good government grass great green
group grow guess guide gun hair half hand happen happy harbour has hat have he head hear heat heavy help her here high
him his hold hole home horse hot hour house how hundred hurry ice idea if in inch it join jump just keep kind king knew
know lake land`

// words[i] is a word of at most 15 letters and a blank, in the first wordSizes[i] of
// its 16 bytes.
var words, wordSizes = func() (w [256][16]byte, sizes [256]uint8) {
	for i, word := range strings.Fields(wordList) {
		sizes[i] = uint8(copy(w[i][:], word+" "))
	}
	return w, sizes
}()

// fillText fills b with English words and blanks, the last word truncated. Batches of
// it compress to a third with gzip and zstd, and to a half with lz4 and snappy.
func fillText(b []byte, x uint64) {
	var choice uint64
	left := 0
	for len(b) > 0 {
		if left == 0 {
			choice, left = word(x), 8
			x += golden
		}
		i := uint8(choice)
		choice >>= 8
		left--
		if len(b) >= 16 {
			// Copying sixteen bytes is faster than copying only the word; the next word
			// overwrites the excess.
			*(*[16]byte)(b) = words[i]
			b = b[wordSizes[i]:]
			continue
		}
		b = b[copy(b, words[i][:wordSizes[i]]):]
	}
}
