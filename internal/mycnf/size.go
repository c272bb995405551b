package mycnf

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// errSize is the cause common to all text that is no size.
var errSize = errors.New("want a number of bytes, or one with K, M, G, T or P, such as 700M or 4GiB")

// ParseSize reads a size as my.cnf and command lines write it: plain bytes, or with K, M, G, T, P in either
// case, also as "4Gi", "4GiB" or "4GB"; all are powers of 1024. Negative sizes, fractions and sizes above
// 2^63-1 bytes are refused.
func ParseSize(s string) (int64, error) {
	n, err := parseBytes(s)
	if err != nil {
		return 0, fmt.Errorf("cannot read size %q: %w", s, err)
	}
	if n > math.MaxInt64 {
		return 0, fmt.Errorf("cannot read size %q: it is too large", s)
	}
	return int64(n), nil
}

// parseBytes is ParseSize with the range of the servers' own variables, whose largest values exceed an int64.
func parseBytes(s string) (uint64, error) {
	text := strings.TrimSpace(s)
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if digits == 0 {
		return 0, errSize
	}
	shift, ok := sizeShift(text[digits:])
	if !ok {
		return 0, errSize
	}
	n, err := strconv.ParseUint(text[:digits], 10, 64)
	if err != nil || n > math.MaxUint64>>shift {
		return 0, errors.New("it is too large")
	}
	return n << shift, nil
}

// sizeShift tells the power of two that a suffix stands for.
func sizeShift(suffix string) (shift uint, ok bool) {
	unit := strings.ToUpper(suffix)
	if unit == "" || unit == "B" {
		return 0, true
	}
	at := strings.IndexByte("KMGTP", unit[0])
	if at < 0 {
		return 0, false
	}
	switch unit[1:] {
	case "", "B", "I", "IB":
		return uint(10 * (at + 1)), true
	}
	return 0, false
}

// FormatSize writes a size as my.cnf takes it, with the largest unit that divides it: 134217728 is "128M",
// 1000 is "1000".
func FormatSize(n int64) string {
	units := []string{"", "K", "M", "G", "T", "P"}
	at := 0
	for n != 0 && n%1024 == 0 && at < len(units)-1 {
		n /= 1024
		at++
	}
	return strconv.FormatInt(n, 10) + units[at]
}

// AsWritten is a variable's value as a my.cnf has it: a size with its unit, any other as it is.
func AsWritten(name, value string) string {
	n, err := ParseSize(value)
	if size := Plain(name, "1K") == "1024"; err != nil || !size {
		return value
	}
	return FormatSize(n)
}

// PageSize is InnoDB's page size in bytes that settings ask for; 16 KiB, every server's default, where they
// do not.
func PageSize(settings []Setting) int {
	size := 16 << 10
	for _, s := range settings {
		if s.Name == "innodb_page_size" {
			if n, err := ParseSize(s.Value); err == nil {
				size = int(n)
			}
		}
	}
	return size
}
