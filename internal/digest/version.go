package digest

// Version is the version of Of. It is raised whenever Of makes a different row
// of the same report, so that stored rows are made again.
const Version = 15
