package digest

// Version is of what Of makes of a report. It is raised whenever Of makes
// another row of the same report, so that rows that were kept are made anew.
const Version = 10
