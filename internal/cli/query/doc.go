// Package query has the command query, of Riemann: it asks a server's index in the server's own query
// language, and prints the events as a table or as JSON.
package query
