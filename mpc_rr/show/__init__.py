"""What people see. The renderers know publications and no protocol."""
