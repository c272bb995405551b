package stats

import "david/internal/result"

const MinBlocks = 4

func Compare(d result.Design, arms []result.Arm, trials []result.Trial) []Comparison { return nil }
func Precise(c Comparison, precision float64) bool                                   { return false }
