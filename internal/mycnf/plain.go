package mycnf

import (
	"fmt"
	"strconv"
	"strings"
)

// Plain is a value without suffixes and words, as SET GLOBAL and the parameter groups of managed servers take
// it: bytes for a size, 1 or 0 for a switch. Any other value stays.
func Plain(name, value string) string {
	switch catalogue()[Normalise(name)].Kind {
	case KindBool:
		switch onOff(value) {
		case "ON":
			return "1"
		case "OFF":
			return "0"
		}
	case KindSize:
		if n, err := ParseSize(value); err == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	return value
}

// SetStatement is the SQL that sets a variable in a scope: GLOBAL, PERSIST. The value is as a my.cnf has it.
func SetStatement(scope, name, value string) string {
	return fmt.Sprintf("SET %s %s = %s", scope, name, literal(Plain(name, value)))
}

// literal is a value in SQL: numbers as they are, since servers take no text for them. Backslashes are
// doubled, which is right unless sql_mode has NO_BACKSLASH_ESCAPES; no value that david sets has any.
func literal(value string) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil && strings.Trim(value, "+-.0123456789") == "" {
		return value
	}
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(value) + "'"
}
