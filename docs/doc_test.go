// Package docs holds the documents to the code: it runs the examples in the pages against the strategies, and compares
// tables of keys, strategies, repairs and tests with what there is. go test ./docs -rewrite writes results and the table of
// repairs anew.
package docs
