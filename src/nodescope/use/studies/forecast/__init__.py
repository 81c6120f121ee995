"""When a path that grows touches its limit: noise, growth, evidence, first passage."""
