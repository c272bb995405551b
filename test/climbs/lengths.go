package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// printLengths prints how long the functions of cmd and internal are, tests aside.
func printLengths(out io.Writer, root string) error {
	var lines []int
	longest, where := 0, ""
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			found, err := lengths(path)
			for name, n := range found {
				lines = append(lines, n)
				if n > longest {
					longest, where = n, name
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(lines)
	_, err := fmt.Fprintf(out, "%d functions: %d lines (median), %d (95 %%), %d (longest: %s)\n", len(lines), lines[len(lines)/2], lines[len(lines)*95/100], longest, where)
	return err
}

// lengths are the lines of a file's functions, by place and name.
func lengths(path string) (map[string]int, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			from, to := set.Position(f.Pos()), set.Position(f.End())
			found[fmt.Sprintf("%s in %s:%d", f.Name.Name, path, from.Line)] = to.Line - from.Line + 1
		}
	}
	return found, nil
}
