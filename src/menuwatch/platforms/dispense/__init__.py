"""The Dispense platform (AIQ).

Based on 100 recorded products of one shop (New Jersey, June 2025) and on public descriptions of its API.
"""
